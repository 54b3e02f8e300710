"""scikit-learn's own conformance checks, with no expected failures."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from parablock import (
    AutoKernelClassifier,
    AutoKernelRegressor,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVR,
)

ESTIMATORS = [
    KernelSVC(),
    KernelSVC(loss="squared_hinge", fit_intercept=False),
    KernelLogisticRegression(),
    KernelSVR(),
    KernelRidge(),
    KernelQuantileRegressor(),
    AutoKernelRegressor(),
    AutoKernelClassifier(),
]


@parametrize_with_checks(ESTIMATORS)
def test_scikit_learn_check(estimator, check):
    check(estimator)
