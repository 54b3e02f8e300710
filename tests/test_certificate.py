"""Certificates: what NumPy computes from the formulas in float64, whatever the fit has claimed."""

import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.spatial.distance import cdist
from sklearn.exceptions import ConvergenceWarning
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import parablock
from benchmarks.exact import values_of
from parablock import (
    CertificateError,
    KernelLogisticRegression,
    KernelQuantileRegressor,
    KernelRidge,
    KernelSVC,
    KernelSVCCV,
    KernelSVR,
    certifying,
)
from parablock.devices import CpuDevice
from parablock.devices.cpu.differences import DenseDifferences, SparseDifferences
from parablock.kernels import Kernel, make_kernel
from parablock.models import ModelFileError
from parablock.scaling import Scaling
from tests.models import zoo
from tests.small_problems import features, full_coef, in_format, rbf, targets

X, Y = features(), targets("labels")


def training_data(name, data_format, dtype):
    """What the model of that name in the zoo is fitted with."""
    estimator, options = zoo.MODELS[name]
    y = targets("labels" if hasattr(estimator, "decision_function") else "numbers")
    return in_format(X.astype(dtype), data_format), options.get("y", y), options.get("sample_weight")


def assert_true(certificate, expected, rel=1e-9):
    scale = max(abs(expected.primal), abs(expected.dual))
    assert certificate.primal_objective == pytest.approx(expected.primal, abs=rel * scale)
    assert certificate.dual_objective == pytest.approx(expected.dual, abs=rel * scale)
    if certificate.duality_gap is not None:
        assert certificate.duality_gap == pytest.approx(expected.primal - expected.dual, abs=rel * scale)
        assert certificate.duality_gap >= 0


def unit_of_tol(model, y):
    """1, or the spread of the targets that four of five of them do not exceed."""
    if type(model).__name__ not in ("KernelRidge", "KernelQuantileRegressor") or np.ndim(y) > 1:
        return 1.0
    return np.sort(np.abs(y - np.sort(y)[len(y) // 2]))[int(0.8 * len(y))]


def kernel_of(name):
    return make_kernel(name, gamma=0.3)


def chi2(one, other):
    total = one + other
    return np.sum((one - other) ** 2 / np.where(total > 0, total, 1.0))


def fitted(model, *data, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data, **more)


# ------------------------------------------------------------------------------------------------- what it says is true


@pytest.mark.parametrize(("data_format", "dtype"), [("dense", np.float64), ("dense", np.float32), ("csr", np.float32)])
@pytest.mark.parametrize("name", zoo.MODELS)
def test_every_kind_of_model(name, data_format, dtype):
    model, data = zoo.make(name, data_format, dtype), training_data(name, data_format, dtype)
    certificate, expected = model.certify(*data), values_of(model, *data)
    assert_true(certificate, expected)
    if not isinstance(model, KernelLogisticRegression):  # whose slopes at the bounds are infinite
        unit = unit_of_tol(model, data[1])
        assert certificate.violation == pytest.approx(expected.violation / unit, rel=1e-6, abs=1e-9)
    assert certificate.infeasibility < 1e-10
    assert len(certificate.outputs) == (len(model.dual_coef_) if len(model.dual_coef_) > 1 else 0)
    if certificate.outputs:
        assert sum(part.dual_objective for part in certificate.outputs) == pytest.approx(certificate.dual_objective)
        assert max(part.violation for part in certificate.outputs) == certificate.violation
    assert (certificate.duality_gap is None) == (model.kernel == "sigmoid")


KERNELS = ("rbf", "laplacian", "chi2", "matern32", "matern52", "linear", "poly", "cosine")


@pytest.mark.parametrize("data_format", ["dense", "csr"])
@pytest.mark.parametrize("kernel", KERNELS)
def test_unscaled_data(kernel, data_format):
    """Whatever becomes of the fit: differences of large numbers are exact where products are not."""
    rows = np.abs(X[:, :3]) + [[1e4, 0, 300]]
    rows[:, 1] *= 1e3
    gamma = 0.5 if kernel in KERNELS[:5] else 1e-12
    model = fitted(KernelSVR(C=2, kernel=kernel, gamma=gamma, max_iter=3), in_format(rows, data_format), X[:, 3])
    certificate = model.certify(in_format(rows, data_format), X[:, 3])
    assert_true(certificate, values_of(model, rows, X[:, 3]), rel=1e-8)


@pytest.mark.parametrize("make", [DenseDifferences, SparseDifferences])
@pytest.mark.parametrize(("kernel", "metric"), [("rbf", "sqeuclidean"), ("laplacian", "cityblock"), ("chi2", chi2)])
def test_distances_by_differences(make, kernel, metric):
    rows = np.abs(features(40, seed=1)) + [[1e12, 0, 1e6, 0]]
    other = np.abs(features(30, seed=2)) + [[1e12, 0, 1e6, 0]]
    pair = [make(values if make is DenseDifferences else sp.csr_matrix(values), kernel_of(kernel).overlap)
            for values in (rows, other)]  # fmt: skip
    values = CpuDevice(1).gram(kernel_of(kernel), *pair)
    np.testing.assert_allclose(values, np.exp(-0.3 * cdist(rows, other, metric)), rtol=1e-12)
    device = CpuDevice(2)
    with device.session():
        coef = np.ones((1, 30))
        np.testing.assert_allclose(device.kernel_dot(kernel_of(kernel), *pair, coef)[0], values.sum(axis=1), rtol=1e-12)


def test_a_wrong_claim_is_found_out():
    """Float32 rows with a large feature, coefficients that were trained with wrong kernel values."""
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200, 5))
    rows[:, 0] = rng.uniform(0, 1e4, 200)
    rows, y = rows.astype(np.float32), (rows[:, 1] > 0).astype(int)
    with pytest.warns(UserWarning, match="in float64 instead"):
        model = KernelSVC(C=10, gamma=1.0).fit(rows, y)
    model._models["global"].expansion.coef[:] *= 0.5  # as a fit might have left them
    model.dual_coef_ = model._models["global"].expansion.coef
    certificate, expected = model.certify(rows, y), values_of(model, rows, y)
    assert_true(certificate, expected)
    assert certificate.duality_gap > 10
    assert certificate.violation == pytest.approx(expected.violation)


@pytest.mark.parametrize("prepared", ["weights", "classes", "balanced"])
def test_weights_count(prepared):
    weight = np.where(X[:, 0] > 0, 0.5, 2.0) * (np.arange(len(X)) % 5 > 0)
    class_weight = {"weights": None, "classes": {1: 3.0}, "balanced": "balanced"}[prepared]
    model = KernelSVC(C=3, gamma=0.5, class_weight=class_weight).fit(X, Y, weight)
    assert_true(model.certify(X, Y, weight), values_of(model, X, Y, weight))


def test_an_intercept_that_is_off_costs_gap_and_not_violation():
    model = KernelSVC(C=3, gamma=0.5).fit(X, Y)
    before = model.certify(X, Y)
    model._models["global"].intercept[0] += 0.25
    after = model.certify(X, Y)
    assert after.duality_gap > before.duality_gap + 0.1
    assert (after.violation, after.dual_objective) == (before.violation, before.dual_objective)
    assert_true(after, values_of(model, X, Y))


@pytest.mark.parametrize("change", ["bounds", "sum"])
def test_infeasible_coefficients_have_no_dual_value(change):
    model = KernelSVC(C=3, gamma=0.5).fit(X, Y)
    coef = model._models["global"].expansion.coef
    place = np.flatnonzero(np.abs(coef[0]) < 2.5)[0] if change == "sum" else np.flatnonzero(np.abs(coef[0]) > 2.999)[0]
    coef[0, place] += 1e-3 * np.sign(coef[0, place])
    certificate = model.certify(X, Y)
    assert certificate.dual_objective == -np.inf
    assert certificate.duality_gap == certificate.relative_gap == np.inf
    assert certificate.infeasibility == pytest.approx(1e-3)
    assert "do not sum to zero, by 0.001" in certificate.note
    assert np.isfinite(certificate.primal_objective)


@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6])
def test_a_sum_that_is_rounding_is_judged_in_the_unit_of_the_targets(unit):
    target = unit * np.sin(X[:, 0])
    model = KernelQuantileRegressor(C=1, gamma=2.0).fit(X, target)
    certificate = model.certify(X, target)
    assert certificate.dual_objective == pytest.approx(model.dual_objective_, rel=1e-9)
    assert not certificate.note


# -------------------------------------------------------------------------------------------- kernels of the user's own


def double(rows, others):
    rows, others = (values.toarray() if sp.issparse(values) else values for values in (rows, others))
    return np.exp(-np.abs(rows[:, None] - others[None]).sum(axis=2))


class Cauchy(Kernel):
    shift_invariant = True

    def transform(self, tile, row_self, column_self):
        tile[...] = 1 / (1 + row_self[:, None] + column_self - 2 * tile)

    def diagonal(self, self_overlap):
        return np.ones_like(self_overlap)


@pytest.mark.parametrize("data_format", ["dense", "csr"])
@pytest.mark.parametrize("kernel", ["function", "class"])
def test_kernels_of_the_users_own(kernel, data_format):
    own = double if kernel == "function" else Cauchy()
    formula = double if kernel == "function" else lambda a, b: 1 / (1 + ((a[:, None] - b[None]) ** 2).sum(axis=2))
    rows = in_format(X.astype(np.float32), data_format)
    model = KernelSVC(C=3, kernel=own).fit(rows, Y)
    certificate = model.certify(rows, Y)
    assert_true(certificate, values_of(model, rows, Y, kernel=formula))
    assert certificate.duality_gap is not None


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_given_matrix(dtype):
    K = rbf(X).astype(dtype)
    weight = (np.arange(len(X)) % 4 > 0).astype(float)
    for given in (None, weight):
        model = KernelSVC(C=3, kernel="precomputed").fit(K, Y, given)
        assert_true(model.certify(K, Y, given), values_of(model, K, Y, given))


def test_a_kernel_that_is_not_positive_semi_definite_has_no_gap():
    indefinite = rbf(X) - 0.5 * np.eye(len(X))
    cases = [
        (KernelSVC(kernel="sigmoid"), X, "sigmoid"),
        (KernelSVC(kernel="poly", coef0=-1), X, "coef0 < 0"),
        (KernelSVC(kernel="precomputed"), indefinite, "not positive semi-definite"),
        (KernelSVC(kernel=lambda a, b: -double(a, b)), X, "not positive semi-definite"),
    ]
    for model, rows, why in cases:
        certificate = fitted(model, rows, Y).certify(rows, Y)
        assert certificate.duality_gap is certificate.relative_gap is None
        assert why in certificate.note
        assert "none" in str(certificate)
        assert certificate.violation >= 0
        assert np.isfinite([certificate.primal_objective, certificate.dual_objective]).all()


def of_texts(one, other):
    """How many words two texts have in common."""
    return np.array([[len(set(a.split()) & set(b.split())) for b in other.ravel()] for a in one.ravel()], dtype=float)


def test_rows_that_are_not_numbers():
    rng = np.random.default_rng(0)
    texts = np.array([" ".join(rng.choice(list("abcdefghij"), 4)) for _ in range(60)], dtype=object)
    y = np.array([("a" in text) != (rng.random() < 0.1) for text in texts])
    weight = (np.arange(60) % 5 > 0).astype(float)
    model = KernelSVC(C=3, kernel=of_texts).fit(texts, y, weight)
    K = of_texts(texts, texts)
    given = KernelSVC(C=3, kernel="precomputed").fit(K, y, weight)
    certificate = model.certify(texts, y, weight)
    assert_true(certificate, values_of(given, K, y, weight), rel=1e-4)  # two fits of the same problem
    assert certificate.duality_gap < 1e-2 * certificate.primal_objective
    other = texts.copy()
    other[7] += " z"
    with pytest.raises(CertificateError, match="not the rows"):
        model.certify(other, y, weight)


def test_an_infinite_c_is_certified_with_a_finite_one_that_is_as_good():
    model = KernelSVC(C=np.inf, gamma=2.0).fit(X, Y)
    certificate = model.certify(X, Y)
    assert certificate.duality_gap < 1e-2 * certificate.primal_objective
    least = (
        0.5 * full_coef(model) @ rbf(X, gamma=2.0) @ full_coef(model).T
    )  # half of the squared norm: no row has a loss
    assert certificate.primal_objective == pytest.approx(least[0, 0], rel=1e-2)
    assert "C=inf" in certificate.note


def test_a_model_that_scales_its_rows_is_certified_with_the_rows_as_they_were():
    scaling = Scaling.of(X)
    for data_format in ("dense", "csr"):
        model = KernelSVC(C=3, gamma=0.2, warm_start=True)
        model._scaling = scaling
        rows = in_format(X, data_format)
        model.fit(rows, Y)
        certificate = model.certify(rows, Y)
        assert_true(certificate, values_of(model, X, Y))
        with pytest.raises(CertificateError):
            model.certify(scaling.apply(X), Y)


def test_a_pipeline_that_became_a_model_does_not_know_its_rows(tmp_path):
    pipeline = make_pipeline(StandardScaler(), KernelSVC()).fit(X, Y)
    parablock.save(pipeline, tmp_path / "model.pbk")
    with pytest.raises(CertificateError, match="scalers of a pipeline"):
        parablock.load(tmp_path / "model.pbk").certify(X, Y)
    assert pipeline[-1].certify(pipeline[:-1].transform(X), Y).duality_gap is not None


# ------------------------------------------------------------------------------------------------------ on which rows


def test_other_rows_are_refused():
    weight = np.ones(len(X))
    model = KernelSVC().fit(X, Y)
    same = model.certify(X, Y)
    assert model.certify(X.copy(), Y.tolist(), weight) == same == model.certify(sp.csr_matrix(X), Y)
    other, other_y = X.copy(), Y.copy()
    other[71, 3] = np.nextafter(other[71, 3], 9)
    other_y[0] = -other_y[0]
    order = np.r_[1, 0, 2:72]
    for data in (
        (other, Y), (X, other_y), (X, -Y), (X[order], Y[order]), (X[:71], Y[:71]), (X[:, :3], Y), (X, Y.astype(str)),
        (X, Y, np.where(np.arange(72) == 3, 2.0, 1.0)),
    ):  # fmt: skip
        with pytest.raises(CertificateError, match="not the rows, targets and weights"):
            model.certify(*data)
    assert model.certify(X, Y) == same


def test_a_dataframe_and_tensors(recwarn):
    pd, torch = pytest.importorskip("pandas"), pytest.importorskip("torch")
    table = pd.DataFrame(X, columns=list("abcd"))
    model = KernelSVC().fit(table, Y)
    expected = KernelSVC().fit(X, Y).certify(X, Y)
    assert model.certify(table, pd.Series(Y)) == expected
    assert model.certify(torch.tensor(X.copy()), torch.tensor(Y.copy())) == expected
    assert not recwarn.list
    with pytest.raises(CertificateError):
        model.certify(table[list("abdc")], Y)


def test_doubles_of_float32_rows_are_the_same_rows():
    rows = X.astype(np.float32)
    model = KernelRidge().fit(rows, X[:, 0])
    assert model.certify(rows.astype(np.float64), X[:, 0]) == model.certify(X, X[:, 0]) == model.certify(rows, X[:, 0])
    with pytest.raises(CertificateError):
        KernelRidge().fit(X, X[:, 0]).certify(rows, X[:, 0])


def test_a_model_file_knows_the_rows(tmp_path):
    model = KernelSVC(C=3).fit(X, Y)
    model.save(tmp_path / "model.pbk")
    again = parablock.load(tmp_path / "model.pbk")
    assert again.certify(X, Y) == model.certify(X, Y) == pickle.loads(pickle.dumps(model)).certify(X, Y)
    model._fingerprint = None  # as of a file that was written before
    model.save(tmp_path / "old.pbk")
    with pytest.raises(CertificateError, match="Fit it again"):
        parablock.load(tmp_path / "old.pbk").certify(X, Y)
    model._fingerprint = "float32:0"
    model.save(tmp_path / "wrong.pbk")
    with pytest.raises(ModelFileError, match="fingerprint"):
        parablock.load(tmp_path / "wrong.pbk")


def test_a_search_certifies_its_best_model():
    search = KernelSVCCV(Cs=[1.0, 4.0], gammas=[0.5], cv=3).fit(X, Y)
    assert search.certify(X, Y) == search.best_estimator_.certify(X, Y)


# ---------------------------------------------------------------------------------------------- in parts, and in peace


@pytest.mark.parametrize("data_format", ["dense", "csr", "mapped", "given"])
def test_a_little_at_a_time(data_format, tmp_path, monkeypatch, capsys):
    rows = rbf(X) if data_format == "given" else in_format(X, data_format)
    if data_format == "mapped":
        np.save(tmp_path / "rows.npy", X)
        rows = np.load(tmp_path / "rows.npy", mmap_mode="r")
    weight = (np.arange(len(X)) % 6 > 0).astype(float)
    kernel = "precomputed" if data_format == "given" else "rbf"
    model = KernelSVC(C=3, kernel=kernel).fit(rows, Y, weight)
    whole = model.certify(rows, Y, weight)
    sizes = []
    original = CpuDevice.kernel_dot
    monkeypatch.setattr(
        CpuDevice, "kernel_dot", lambda self, *given: sizes.append(len(given[1])) or original(self, *given)
    )
    monkeypatch.setattr(certifying, "_CHUNK", 10 * rows.shape[1] * 8)
    monkeypatch.setattr(certifying, "_SECONDS", 0.0)
    parts = model.set_params(verbose=1).certify(rows, Y, weight)
    assert len(sizes) > 5
    assert max(sizes) < 40
    assert parts.duality_gap == pytest.approx(whole.duality_gap, abs=1e-9)
    assert parts.primal_objective == pytest.approx(whole.primal_objective, rel=1e-12)
    assert "100%" in capsys.readouterr().err.splitlines()[-1]


def test_an_interrupt_leaves_the_model_as_it_was(monkeypatch):
    model = KernelSVC().fit(X, Y)
    before = pickle.dumps(model)

    def interrupted(self, *given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(CpuDevice, "kernel_dot", interrupted)
        with pytest.raises(KeyboardInterrupt):
            model.certify(X, Y)
    assert pickle.dumps(model) == before
    assert model.certify(X, Y).duality_gap < 1e-2


def test_it_prints_well():
    three = KernelSVC(C=3, gamma=0.5).fit(X, zoo.CLASSES).certify(X, zoo.CLASSES)
    lines = str(three).splitlines()
    assert lines[0] == "Certificate (kernel values in float64)"
    assert [line.split()[:2] for line in lines[1:4]] == [
        ["primal", "objective"],
        ["dual", "objective"],
        ["duality", "gap"],
    ]
    assert [line.split()[:2] for line in lines[-3:]] == [["class", "0"], ["class", "1"], ["class", "2"]]
    two = KernelQuantileRegressor().fit(X, zoo.TWO_TARGETS).certify(X, zoo.TWO_TARGETS)
    assert "target 1" in str(two)
    with pytest.raises(AttributeError):
        two.violation = 0.0
