"""Our machines with the parameters of scikit-learn's, by their names and defaults, and its sparse results.

What scikit-learn's have and ours do not is taken and has no effect: shrinking, cache_size, probability ...
"""

from dataclasses import replace
from inspect import signature
from numbers import Integral, Real

import scipy.sparse as sp
from sklearn.utils._param_validation import Interval

import parablock


class _Svm:
    def _settings(self, partition):
        settings = super()._settings(partition)
        return replace(settings, max_iter=1000) if self.max_iter == -1 else settings

    def fit(self, X, y, sample_weight=None):
        super().fit(X, y, sample_weight)
        if sp.issparse(X):
            self.dual_coef_ = sp.csr_matrix(self.dual_coef_)
        return self

    @property
    def coef_(self):
        coef = self.dual_coef_ if sp.issparse(self.dual_coef_) else None
        return super().coef_ if coef is None else coef @ self.support_vectors_


def _with_limit(kind):
    return {**kind._parameter_constraints, "max_iter": [Interval(Integral, -1, None, closed="left")]}


class SVC(_Svm, parablock.KernelSVC):
    _parameter_constraints = _with_limit(parablock.KernelSVC)

    def __init__(
        self,
        *,
        C=1.0,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        shrinking=True,
        probability=False,
        tol=1e-3,
        cache_size=200,
        class_weight=None,
        verbose=False,
        max_iter=-1,
        decision_function_shape="ovr",
        break_ties=False,
        random_state=None,
    ):
        _keep(self, locals())


class SVR(_Svm, parablock.KernelSVR):
    _parameter_constraints = _with_limit(parablock.KernelSVR)

    def __init__(
        self,
        *,
        kernel="rbf",
        degree=3,
        gamma="scale",
        coef0=0.0,
        tol=1e-3,
        C=1.0,
        epsilon=0.1,
        shrinking=True,
        cache_size=200,
        verbose=False,
        max_iter=-1,
    ):
        _keep(self, locals())


class KernelRidge(parablock.KernelRidge):
    _parameter_constraints = {
        **parablock.KernelRidge._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="left")],
        "gamma": [Interval(Real, 0, None, closed="left"), None],
    }

    def __init__(self, alpha=1, *, kernel="linear", gamma=None, degree=3, coef0=1, kernel_params=None):
        _keep(self, locals())

    @property
    def C(self):
        return float("inf") if self.alpha == 0 else 1.0 / (2.0 * self.alpha)

    def _numeric_gamma(self, X, sample_weight):
        return 1.0 / X.shape[1] if self.gamma is None else float(self.gamma)


def _keep(estimator, given):
    for name in estimator._get_param_names():
        setattr(estimator, name, given[name])


# What ours have beyond that is as it is by default; scikit-learn's KernelRidge has no intercept.
for kind, ours in ((SVC, parablock.KernelSVC), (SVR, parablock.KernelSVR), (KernelRidge, parablock.KernelRidge)):
    for name, parameter in signature(ours).parameters.items():
        if name not in signature(kind).parameters and name not in vars(kind):
            setattr(kind, name, parameter.default)
KernelRidge.fit_intercept = False
