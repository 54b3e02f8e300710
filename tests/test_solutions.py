"""Solutions against independent oracles: scipy, scikit-learn, and the same problem posed in another way."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.kernel_ridge import KernelRidge as ScikitKernelRidge
from sklearn.svm import SVC, SVR

from parablock import KernelLogisticRegression, KernelQuantileRegressor, KernelRidge, KernelSVC, KernelSVR
from tests.small_problems import CASES, GAMMA, C, N, features, full_coef, in_format, optimum, rbf, targets

TIGHT = 1e-6
BLOCK_SOLVERS = ["greedy", "random", "cyclic"]
PARTITIONS = {
    "tree": "tree",
    "kmeans": "kmeans",
    "kernel_kmeans": "kernel_kmeans",
    "random": "random",
    "given": np.arange(N) % 4,
}
FORMATS = ["dense", "csr"]

every_partition = pytest.mark.parametrize("partition", PARTITIONS)
every_block_solver = pytest.mark.parametrize("block_solver", BLOCK_SOLVERS)
every_format = pytest.mark.parametrize("data_format", FORMATS)
every_loss = pytest.mark.parametrize("loss", CASES)


def assert_optimal(case, model):
    """The coefficients are feasible, and no better ones exist, to 1e-6 of the objective."""
    coef, (lower, upper) = full_coef(model)[0], case.bounds()
    least = optimum(case.name, model.fit_intercept)
    assert np.all(coef >= lower)
    assert np.all(coef <= upper)
    if model.fit_intercept:
        assert abs(coef.sum()) <= 1e-9 * np.abs(coef).sum()
    objective = case.objective(coef)
    assert abs(objective - least) <= 1e-6 * abs(least)
    assert model.dual_objective_ == pytest.approx(-objective, rel=1e-9)
    assert model.violation_ <= model.tol


# ------------------------------------------------------------------------------------------ scipy's dual optimum


@every_format
@every_partition
@every_block_solver
@every_loss
def test_solution_without_intercept_is_scipys(loss, block_solver, partition, data_format):
    case = CASES[loss]
    model = case.model(
        fit_intercept=False, tol=TIGHT, n_blocks=4, block_solver=block_solver, partition=PARTITIONS[partition]
    )
    model.fit(in_format(case.X, data_format), case.y)
    assert len(model.partition_.blocks) == 4
    assert_optimal(case, model)


@pytest.mark.parametrize("partition", ["tree", "random"])
@every_block_solver
@every_loss
def test_fixed_partition_without_intercept_finds_the_same_solution(loss, block_solver, partition):
    case = CASES[loss]
    settings = {"tol": 1e-4, "n_blocks": 4, "block_solver": block_solver, "partition": partition}
    assert_optimal(case, case.fit(fit_intercept=False, regroup=False, **settings))


@pytest.mark.parametrize("regroup", [True, False])
@every_block_solver
@every_loss
def test_solution_with_intercept_is_scipys(loss, block_solver, regroup):
    case = CASES[loss]
    assert_optimal(case, case.fit(tol=TIGHT, n_blocks=4, block_solver=block_solver, regroup=regroup))


@pytest.mark.parametrize("partition", ["kmeans", "kernel_kmeans", "random", "given"])
@every_loss
def test_solution_with_intercept_does_not_depend_on_the_partition(loss, partition):
    case = CASES[loss]
    model = case.model(tol=TIGHT, n_blocks=4, partition=PARTITIONS[partition])
    assert_optimal(case, model.fit(in_format(case.X, "csr"), case.y))


@pytest.mark.parametrize("line_search", ["exact", "armijo"])
@pytest.mark.parametrize("loss", [name for name in CASES if name != "logistic"])
def test_solution_does_not_depend_on_the_line_search(loss, line_search):
    case = CASES[loss]
    settings = {"fit_intercept": False, "tol": TIGHT, "n_blocks": 4, "regroup": False, "partition": "kmeans"}
    assert_optimal(case, case.fit(line_search=line_search, **settings))


def test_float32_rows_reach_the_float64_optimum_to_single_precision():
    case = CASES["hinge"]
    model = case.model(tol=1e-3, n_blocks=4).fit(case.X.astype(np.float32), case.y)
    assert case.objective(full_coef(model)[0]) == pytest.approx(optimum("hinge", True), rel=1e-4)


# ----------------------------------------------------------------------------------------- scikit-learn's machines

KERNELS = {
    "rbf": {"kernel": "rbf", "gamma": GAMMA},
    "rbf with gamma='scale'": {"kernel": "rbf", "gamma": "scale"},
    "rbf with gamma='auto'": {"kernel": "rbf", "gamma": "auto"},
    "linear": {"kernel": "linear"},
    "poly": {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0},
}
WEIGHT = np.random.default_rng(5).uniform(0.1, 3.0, N)
WAYS = {
    "plain": {},
    "class_weight": {"class_weight": {-1: 0.4, 1: 2.0}},
    "class_weight='balanced'": {"class_weight": "balanced"},
}


def svm_objective(machine, y, K, epsilon=0.0):
    """The dual objective of a fitted SVC or SVR, ours or scikit-learn's (whose `dual_coef_` may be sparse)."""
    coef = np.zeros(len(K))
    dual = machine.dual_coef_
    coef[machine.support_] = np.asarray(dual.todense() if hasattr(dual, "todense") else dual).ravel()
    return 0.5 * coef @ K @ coef - y @ coef + epsilon * np.abs(coef).sum()


def assert_same_machine(ours, theirs, X, y, K, predictions, epsilon=0.0):
    expected = svm_objective(theirs, y, K, epsilon)
    assert svm_objective(ours, y, K, epsilon) == pytest.approx(expected, rel=1e-4)
    assert_same_predictions(predictions(ours, X), predictions(theirs, X))


def assert_same_predictions(own, other):
    assert np.abs(own - other).max() <= 1e-4 * np.abs(other).max()


def kernel_matrix(X, kernel, gamma=1.0, degree=3, coef0=0.0):
    if kernel == "rbf":
        return rbf(X, gamma={"scale": 1 / (X.shape[1] * X.var()), "auto": 1 / X.shape[1]}.get(gamma, gamma))
    return X @ X.T if kernel == "linear" else (gamma * X @ X.T + coef0) ** degree


@every_format
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_classifier_with_intercept_equals_svc(kernel, way, data_format):
    X, y = features(), targets("labels")
    settings = {"C": C, "tol": 1e-6, **KERNELS[kernel], **WAYS[way]}
    rows = in_format(X, data_format)
    ours = KernelSVC(**settings, n_blocks=4, random_state=0, n_jobs=1).fit(rows, y)
    theirs = SVC(**settings).fit(rows, y)
    K = kernel_matrix(X, **KERNELS[kernel])
    assert_same_machine(ours, theirs, rows, y, K, lambda machine, Z: machine.decision_function(Z))
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=1e-3)


@every_format
@pytest.mark.parametrize("kernel", KERNELS)
def test_regressor_with_intercept_equals_svr(kernel, data_format):
    X, y = features(), targets("numbers")
    settings = {"C": C, "epsilon": 0.1, "tol": 1e-6, **KERNELS[kernel]}
    rows = in_format(X, data_format)
    ours = KernelSVR(**settings, n_blocks=4, random_state=0, n_jobs=1).fit(rows, y)
    theirs = SVR(**settings).fit(rows, y)
    K = kernel_matrix(X, **KERNELS[kernel])
    assert_same_machine(ours, theirs, rows, y, K, lambda machine, Z: machine.predict(Z), epsilon=0.1)


@pytest.mark.parametrize("zeros", [False, True], ids=["positive weights", "some weights zero"])
@pytest.mark.parametrize(
    ("ours", "theirs", "kind", "decide"),
    [(KernelSVC, SVC, "labels", "decision_function"), (KernelSVR, SVR, "numbers", "predict")],
    ids=["classifier", "regressor"],
)
def test_sample_weights_act_as_in_scikit_learn(ours, theirs, kind, decide, zeros):
    X, y, K, weight = features(), targets(kind), rbf(features()), WEIGHT.copy()
    weight[::5] *= not zeros
    settings = {"C": C, "gamma": GAMMA, "tol": 1e-6}
    own = ours(**settings, n_blocks=4, random_state=0, n_jobs=1).fit(X, y, sample_weight=weight)
    # Where weights are zero SVC numbers its support vectors in another way, so those rows are left out for it.
    kept = weight > 0
    other = theirs(**settings).fit(X[kept], y[kept], sample_weight=weight[kept])
    epsilon = 0.1 if kind == "numbers" else 0.0
    expected = svm_objective(other, y[kept], K[np.ix_(kept, kept)], epsilon)
    assert svm_objective(own, y, K, epsilon) == pytest.approx(expected, rel=1e-4)
    assert_same_predictions(getattr(own, decide)(X), getattr(other, decide)(X))


@every_format
@pytest.mark.parametrize(
    ("ours", "theirs", "kind"),
    [(KernelSVC, SVC, "labels"), (KernelSVR, SVR, "numbers")],
    ids=["classifier", "regressor"],
)
@pytest.mark.parametrize("kernel", ["linear", "poly"])
def test_rows_of_zeros_are_rows_like_others(kernel, ours, theirs, kind, data_format):
    """Their kernel values are zero, the ones with themselves too."""
    X, y = features().copy(), targets(kind)
    X[::4] = 0.0
    settings = {"C": C, "kernel": kernel, "gamma": 0.5, "tol": 1e-6}
    own = ours(**settings, n_blocks=4, random_state=0, n_jobs=1).fit(in_format(X, data_format), y)
    other = theirs(**settings).fit(X, y)
    assert_same_predictions(own.predict(in_format(X, data_format)), other.predict(X))


@pytest.mark.parametrize("coef0", [-1.0, 0.0, 1.0])
def test_kernel_that_is_not_positive_definite_is_trained_to_a_stationary_point(coef0):
    X, y = features(), targets("labels")
    settings = {"C": C, "kernel": "sigmoid", "gamma": 0.5, "coef0": coef0}
    ours = KernelSVC(**settings, n_blocks=4, random_state=0, n_jobs=1).fit(X, y)
    assert ours.violation_ <= 1e-3
    # There may be several, of which no program promises the best.
    assert abs(ours.score(X, y) - SVC(**settings).fit(X, y).score(X, y)) < 0.1


@pytest.mark.parametrize("partition", ["tree", "kernel_kmeans"])
def test_precomputed_kernel_equals_svc(partition):
    X, y, new = features(), targets("labels"), features(30, seed=9)
    settings = {"kernel": "precomputed", "C": C, "tol": 1e-6}
    ours = KernelSVC(**settings, n_blocks=4, partition=partition, random_state=0, n_jobs=1).fit(rbf(X), y)
    theirs = SVC(**settings).fit(rbf(X), y)
    K_new = rbf(new, X)
    assert_same_machine(ours, theirs, K_new, y, rbf(X), lambda machine, Z: machine.decision_function(Z))


def test_precomputed_kernel_with_zero_weights_equals_svc_without_those_rows():
    X, y, new = features(), targets("labels"), features(30, seed=9)
    kept = np.arange(N) % 4 > 0
    ours = KernelSVC(C, kernel="precomputed", tol=1e-6, n_blocks=4, random_state=0, n_jobs=1)
    ours.fit(rbf(X), y, sample_weight=kept.astype(float))
    theirs = SVC(C=C, gamma=GAMMA, tol=1e-6).fit(X[kept], y[kept])
    assert ours.decision_function(rbf(new, X)) == pytest.approx(theirs.decision_function(new), abs=1e-4)


def test_function_of_two_arrays_as_kernel_equals_the_built_in_one():
    X, y, new = features(), targets("numbers"), features(30, seed=9)
    settings = {"C": C, "tol": TIGHT, "n_blocks": 4, "random_state": 0, "n_jobs": 1}
    called = KernelSVR(**settings, kernel=rbf).fit(X, y)
    built_in = KernelSVR(**settings, gamma=GAMMA).fit(X, y)
    assert called.dual_objective_ == pytest.approx(built_in.dual_objective_, rel=1e-9)
    assert called.predict(new) == pytest.approx(built_in.predict(new), abs=1e-5)


@every_format
def test_ridge_without_intercept_equals_scikit_learns(data_format):
    X, y, new = features(), targets("numbers"), features(30, seed=9)
    ours = KernelRidge(C, gamma=GAMMA, fit_intercept=False, tol=1e-7, n_blocks=4, random_state=0, n_jobs=1)
    theirs = ScikitKernelRidge(alpha=1 / (2 * C), kernel="rbf", gamma=GAMMA).fit(X, y)
    ours.fit(in_format(X, data_format), y)
    assert ours.predict(in_format(new, data_format)) == pytest.approx(theirs.predict(new), abs=1e-5)
    assert full_coef(ours)[0] == pytest.approx(theirs.dual_coef_, abs=1e-5)


def test_ridge_with_sample_weights_equals_scikit_learns():
    X, y = features(), targets("numbers")
    ours = KernelRidge(C, gamma=GAMMA, fit_intercept=False, tol=1e-7, n_blocks=4, random_state=0, n_jobs=1)
    theirs = ScikitKernelRidge(alpha=1 / (2 * C), kernel="rbf", gamma=GAMMA).fit(X, y, sample_weight=WEIGHT)
    assert ours.fit(X, y, sample_weight=WEIGHT).predict(X) == pytest.approx(theirs.predict(X), abs=1e-5)


def test_ridge_with_intercept_solves_the_bordered_linear_system():
    X, y = features(), targets("numbers")
    system = np.block([[rbf(X) + np.eye(N) / (2 * C), np.ones((N, 1))], [np.ones((1, N)), np.zeros((1, 1))]])
    expected = np.linalg.solve(system, np.append(y, 0.0))
    model = CASES["squared_error"].fit(tol=1e-7, n_blocks=4)
    assert full_coef(model)[0] == pytest.approx(expected[:N], abs=1e-5)
    assert model.intercept_[0] == pytest.approx(expected[N], abs=1e-5)


# -------------------------------------------------------------------------------- logistic and quantile regression


def primal_logistic(K, y, fit_intercept):
    """Coefficients and intercept that minimise 1/2 c'Kc + sum C log(1 + exp(-y (Kc + b)))."""
    n = len(y)

    def value_and_gradient(point):
        coef, bias = point[:n], point[n] if fit_intercept else 0.0
        decision = K @ coef + bias
        slope = -C * y * expit(-y * decision)
        value = 0.5 * coef @ K @ coef + C * np.logaddexp(0, -y * decision).sum()
        return value, np.append(K @ (coef + slope), slope.sum() if fit_intercept else 0.0)

    options = {"maxiter": 50_000, "maxfun": 100_000, "ftol": 1e-15, "gtol": 1e-9, "maxcor": 50}
    result = minimize(value_and_gradient, np.zeros(n + 1), jac=True, method="L-BFGS-B", options=options)
    return result.x[:n], result.x[n], result.fun


@every_format
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_probabilities_are_those_of_the_primal_problem(fit_intercept, data_format):
    X, y, new = features(), targets("labels"), features(30, seed=9)
    coef, bias, least = primal_logistic(rbf(X), y, fit_intercept)
    model = CASES["logistic"].model(fit_intercept=fit_intercept, tol=TIGHT, n_blocks=4)
    model.fit(in_format(X, data_format), y)
    probability = model.predict_proba(in_format(new, data_format))[:, 1]
    assert probability == pytest.approx(expit(rbf(new, X) @ coef + bias), abs=1e-4)
    assert model.dual_objective_ == pytest.approx(least, rel=1e-6)  # no duality gap


@pytest.mark.parametrize("quantile", [0.1, 0.5, 0.8])
def test_the_right_share_of_targets_lies_below_the_predicted_quantile(quantile):
    rng = np.random.default_rng(0)
    X = rng.uniform(-2, 2, size=(400, 1))
    y = np.sin(2 * X[:, 0]) + rng.exponential(size=400)
    model = KernelQuantileRegressor(1.0, quantile=quantile, gamma=1.0, random_state=0, n_jobs=1).fit(X, y)
    # With an intercept the optimality conditions fix the share up to the points that are hit exactly.
    prediction = model.predict(X)
    below, hit = np.mean(y < prediction - 0.01), np.mean(np.abs(y - prediction) <= 0.01)
    assert below <= quantile <= below + hit
    assert hit < 0.1


# ------------------------------------------------------------------------------------------------- several outputs

classifiers = pytest.mark.parametrize(
    "classifier",
    [KernelSVC(C), KernelSVC(C, loss="squared_hinge"), KernelLogisticRegression(C)],
    ids=["hinge", "squared_hinge", "logistic"],
)


@classifiers
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_several_classes_are_one_binary_machine_each_but_share_kernel_values(classifier, fit_intercept):
    X, y = make_blobs(80, centers=4, cluster_std=3.0, random_state=0)
    settings = {"gamma": 0.3, "fit_intercept": fit_intercept, "tol": TIGHT, "n_blocks": 4, "random_state": 0}
    classifier = clone(classifier).set_params(**settings)
    together = clone(classifier).fit(X, y)
    apart = [clone(classifier).fit(X, y == number) for number in range(4)]
    decisions = np.stack([machine.decision_function(X) for machine in apart], axis=1)
    assert together.decision_function(X) == pytest.approx(decisions, abs=1e-4)
    assert together.dual_objective_ == pytest.approx(sum(machine.dual_objective_ for machine in apart), rel=1e-6)
    assert together.kernel_evaluations_ < sum(machine.kernel_evaluations_ for machine in apart)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_error", "quantile"])
def test_several_targets_equal_separate_fits(loss, fit_intercept):
    X, y = features(), targets("numbers")
    both = np.stack((y, 2 * np.cos(y)), axis=1)
    model = CASES[loss].model(fit_intercept=fit_intercept, tol=TIGHT, n_blocks=4)
    together = model.fit(X, both).predict(X)
    assert together.shape == both.shape
    for column in range(2):
        assert together[:, column] == pytest.approx(model.fit(X, both[:, column]).predict(X), abs=1e-4)
