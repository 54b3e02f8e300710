"""Models that scale rows themselves, and pipelines that become such models: whatever format they take, they predict
what scikit-learn's pipeline predicts."""

import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    RobustScaler,
    StandardScaler,
)
from sklearn.svm import SVC

import parablock
from parablock import KernelLogisticRegression, KernelRidge, KernelSVC, KernelSVCCV, KernelSVR
from parablock.callbacks import ValidationScore
from parablock.certificate import CertificateError
from parablock.models import ModelFileError, describe, from_libsvm, to_libsvm, to_onnx, to_sklearn
from parablock.scaling import Scaling
from tests.models.test_libsvm_format import predicted_by_libsvm
from tests.models.test_onnx import run
from tests.models.zoo import CLASSES, LOCAL, SETTINGS, decision, fit
from tests.small_problems import features, rbf, targets

UNITS, OFFSETS = np.array([0.01, 1.0, 30.0, 2000.0]), np.array([0.0, -3.0, 100.0, 5000.0])
X, NEW = features() * UNITS + OFFSETS, features(40, seed=3) * UNITS + OFFSETS
SPARSE, SPARSE_NEW = sp.csr_matrix(features() * UNITS), sp.csr_matrix(features(40, seed=3) * UNITS)
SCALERS = {
    "standard": [StandardScaler()],
    "mean alone": [StandardScaler(with_std=False), MaxAbsScaler()],
    "variance alone": [StandardScaler(with_mean=False)],
    "min and max": [MinMaxScaler()],
    "another range": [MinMaxScaler((-3, 2))],
    "largest": [MaxAbsScaler()],
    "robust": [RobustScaler()],
    "robust, with options": [RobustScaler(with_centering=False, quantile_range=(10, 80), unit_variance=True)],
    "robust, no scale": [MaxAbsScaler(), RobustScaler(with_scaling=False)],
    "several": [RobustScaler(), "passthrough", MinMaxScaler((1, 5)), None, StandardScaler()],
}
WITHOUT_SHIFT = ["variance alone", "largest", "robust, with options"]
every_scaler = pytest.mark.parametrize("scalers", SCALERS)


def pipeline(scalers, machine, rows=X, y=None):
    steps = [(f"step {number}", clone(step, safe=False)) for number, step in enumerate(SCALERS[scalers])]
    return fit(Pipeline([*steps, ("machine", machine)]), rows, targets("labels") if y is None else y)


def again(model, folder):
    parablock.save(model, folder / "model.pbk")
    return parablock.load(folder / "model.pbk")


@every_scaler
def test_a_saved_pipeline_predicts_what_it_predicted(scalers, tmp_path):
    whole = pipeline(scalers, KernelSVC(**SETTINGS))
    loaded = again(whole, tmp_path)
    assert type(loaded) is KernelSVC
    assert decision(loaded, NEW) == pytest.approx(whole.decision_function(NEW), rel=1e-9, abs=1e-12)
    assert np.array_equal(loaded.predict(NEW), whole.predict(NEW))
    assert loaded.score(NEW, whole.predict(NEW)) == 1.0
    assert whole[-1]._scaling is None  # which is as it was
    with pytest.raises(ValueError, match="features"):
        loaded.predict(NEW[:, :3])


@pytest.mark.parametrize("scalers", WITHOUT_SHIFT)
def test_sparse_rows_stay_sparse(scalers, tmp_path):
    whole = pipeline(scalers, KernelSVC(**SETTINGS), SPARSE)
    loaded = again(whole, tmp_path)
    assert sp.issparse(loaded.support_vectors_)
    for rows in (SPARSE_NEW, SPARSE_NEW.toarray()):
        assert decision(loaded, rows) == pytest.approx(whole.decision_function(SPARSE_NEW), rel=1e-9, abs=1e-12)


@every_scaler
def test_a_model_of_dense_rows_takes_sparse_ones(scalers, tmp_path):
    whole = pipeline(scalers, KernelRidge(**SETTINGS), SPARSE.toarray(), targets("numbers"))
    expected = whole.predict(SPARSE_NEW.toarray())
    assert again(whole, tmp_path).predict(SPARSE_NEW) == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    "machine",
    [
        KernelLogisticRegression(**SETTINGS),
        KernelSVC(kernel="chi2", **SETTINGS),
        KernelSVC(kernel="cosine", **SETTINGS),
        KernelSVC(**LOCAL, **SETTINGS),
        KernelSVCCV(Cs=[1.0, 4.0], gammas=[0.5], cv=3, random_state=0),
    ],
)
def test_pipelines_of_every_machine(machine, tmp_path):
    """A wider range keeps new rows positive, which chi2 needs of the scaled ones alone."""
    whole = fit(make_pipeline(MinMaxScaler((3, 9)), machine), X, targets("labels"))
    loaded = again(whole, tmp_path)
    assert decision(loaded, NEW) == pytest.approx(whole.decision_function(NEW), rel=1e-8, abs=1e-10)
    if hasattr(machine, "predict_proba"):
        assert loaded.predict_proba(NEW) == pytest.approx(whole.predict_proba(NEW), rel=1e-8)


def test_what_is_negative_after_scaling_is_refused_by_chi2(tmp_path):
    loaded = again(fit(make_pipeline(MinMaxScaler(), KernelSVC(kernel="chi2", **SETTINGS)), X), tmp_path)
    with pytest.raises(ValueError, match="chi2"):
        loaded.predict(X - 100 * UNITS)


def test_float32_rows_give_a_float32_model(tmp_path):
    whole = pipeline("standard", KernelSVC(**SETTINGS), X.astype(np.float32))
    loaded = again(whole, tmp_path)
    assert loaded.support_vectors_.dtype == np.float32
    assert decision(loaded, NEW) == pytest.approx(whole.decision_function(NEW.astype(np.float32)), abs=1e-3)


def test_a_search_over_pipelines_and_names_of_columns(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(X, columns=["a", "b", "c", "d"])
    search = GridSearchCV(
        make_pipeline(StandardScaler(), KernelSVC(**SETTINGS)), {"kernelsvc__C": [0.1, 10.0]}, cv=3
    ).fit(table, targets("labels"))  # fmt: skip
    loaded = again(search, tmp_path)
    assert loaded.feature_names_in_.tolist() == ["a", "b", "c", "d"]
    new = pandas.DataFrame(NEW, columns=table.columns)
    assert decision(loaded, new) == pytest.approx(search.decision_function(new), rel=1e-9, abs=1e-12)
    assert to_sklearn(search).predict(new).tolist() == search.predict(new).tolist()


def test_a_pipeline_without_scalers_is_its_last_step(tmp_path):
    whole = fit(Pipeline([("none", "passthrough"), ("machine", KernelSVC(**SETTINGS))]), X)
    assert again(whole, tmp_path)._scaling is None
    assert json.dumps(describe(tmp_path / "model.pbk")).count('"format_version": 1') == 1


@pytest.mark.parametrize(
    ("steps", "match"),
    [
        ([StandardScaler(), PCA(2)], "step 'pca'.* is a PCA, and only scalers are kept with a model: StandardScaler, "),
        ([Normalizer()], "step 'normalizer'"),
        ([FunctionTransformer()], "step 'functiontransformer'"),
        ([MinMaxScaler(clip=True)], r"step 'minmaxscaler'.* with clip=True.* model\[-1\]"),
    ],
)
@pytest.mark.parametrize("write", [parablock.save, to_libsvm, to_onnx])
def test_other_steps_are_refused_by_name(steps, match, write, tmp_path):
    whole = fit(make_pipeline(*steps, KernelSVC(kernel="linear", **SETTINGS)), X)
    with pytest.raises(ModelFileError, match=match):
        write(whole, tmp_path / "model")
    with pytest.raises(ModelFileError, match=match):
        to_sklearn(whole)
    assert not list(tmp_path.iterdir())


class Own(StandardScaler):
    def transform(self, X, copy=None):
        return super().transform(X) ** 3


@pytest.mark.parametrize(
    ("whole", "match"),
    [
        (make_pipeline(Own(), KernelSVC()), "step 'own'.* is a Own"),
        (make_pipeline(StandardScaler(), SVC()), "ends in SVC"),
        (make_pipeline(StandardScaler(), "passthrough"), "ends in str"),
    ],
)
def test_only_pipelines_of_scalers_and_a_machine_of_ours_are_saved(whole, match, tmp_path):
    with pytest.raises(ModelFileError, match=match):
        parablock.save(fit(whole, X, targets("labels")), tmp_path / "model.pbk")


def test_a_kernel_matrix_is_not_scaled(tmp_path):
    whole = fit(make_pipeline(MaxAbsScaler(), KernelSVC(kernel="precomputed")), rbf(features()))
    with pytest.raises(ModelFileError, match=r"step 'maxabsscaler'.* scales a kernel matrix"):
        parablock.save(whole, tmp_path / "model.pbk")


def test_a_pipeline_that_is_not_fitted_is_refused(tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        parablock.save(make_pipeline(StandardScaler(), KernelSVC()), tmp_path / "model.pbk")


# ------------------------------------------------------------------------------------------------------- other formats


@every_scaler
@pytest.mark.parametrize("kernel", ["rbf", "linear", "laplacian"])
def test_onnx_scales(scalers, kernel):
    whole = pipeline(scalers, KernelSVC(kernel=kernel, **SETTINGS))
    made = run(to_onnx(whole), NEW)
    expected = whole.decision_function(NEW)
    assert made["scores"][:, 1] == pytest.approx(expected, rel=1e-3, abs=1e-3 * np.abs(expected).max())


def test_onnx_keeps_the_digits_of_a_large_offset():
    offset = 1e6 + 0.5
    rows, new = (np.rint(16 * part) / 16 + offset for part in (features(), features(40, seed=3)))  # exact in float32
    assert np.array_equal(new.astype(np.float32), new)
    whole = make_pipeline(StandardScaler(), KernelSVC(**SETTINGS)).fit(rows, targets("labels"))
    assert run(to_onnx(whole), new)["scores"][:, 1] == pytest.approx(whole.decision_function(new), abs=1e-3)


@every_scaler
def test_scikit_learn_scales(scalers):
    whole = pipeline(scalers, KernelSVC(**SETTINGS))
    made = to_sklearn(whole)
    assert [type(step) for step in made] == [StandardScaler, SVC]
    assert made.decision_function(NEW) == pytest.approx(whole.decision_function(NEW), abs=1e-9)


@pytest.mark.parametrize("scalers", WITHOUT_SHIFT)
def test_scikit_learn_scales_sparse_rows(scalers):
    whole = pipeline(scalers, KernelSVR(**SETTINGS), SPARSE, targets("numbers"))
    assert to_sklearn(whole).predict(SPARSE_NEW) == pytest.approx(whole.predict(SPARSE_NEW), abs=1e-9)


FOLDING = [
    *[("linear", scalers) for scalers in SCALERS],
    *[("poly", scalers) for scalers in WITHOUT_SHIFT],
    *[("sigmoid", scalers) for scalers in WITHOUT_SHIFT],
]


@pytest.mark.parametrize("y", ["two", "three"])
@pytest.mark.parametrize(("kernel", "scalers"), FOLDING)
def test_libsvm_gets_the_scaling_in_its_support_vectors(kernel, scalers, y, tmp_path):
    labels = targets("labels") if y == "two" else CLASSES
    whole = pipeline(scalers, KernelSVC(kernel=kernel, gamma=0.1, coef0=0.5, degree=2, **SETTINGS), X, labels)
    to_libsvm(whole, tmp_path / "m.model")
    decisions = whole.decision_function(NEW)
    clear = np.abs(decisions) > 1e-6 if y == "two" else np.ptp(np.sort(decisions)[:, -2:], axis=1) > 1e-6
    found, values = predicted_by_libsvm(tmp_path / "m.model", NEW)
    assert np.array_equal(found[clear], whole.predict(NEW)[clear])
    assert np.array_equal(from_libsvm(tmp_path / "m.model").predict(NEW)[clear], whole.predict(NEW)[clear])
    if y == "two":
        assert values[:, 0] == pytest.approx(decisions, rel=1e-6, abs=1e-8 * np.abs(decisions).max())


@pytest.mark.parametrize("rows", [features(), sp.csr_matrix(features())])
@pytest.mark.parametrize("shift", [0.0, 3.0])
def test_one_factor_goes_into_gamma(rows, shift, tmp_path):
    model = KernelSVR(gamma=0.3, **SETTINGS)
    model._scaling = Scaling(np.full(4, shift), np.full(4, 2.5))
    fit(model, rows)
    to_libsvm(model, tmp_path / "m.model")
    new = features(40, seed=3)
    peer = fit(KernelSVR(gamma=0.3, **SETTINGS), (features() - shift) * 2.5)
    assert predicted_by_libsvm(tmp_path / "m.model", new)[0] == pytest.approx(peer.predict((new - shift) * 2.5))


@pytest.mark.parametrize(
    ("kernel", "scalers", "match"),
    [
        ("rbf", "standard", "with the rbf kernel .* where all features have the same factor, which is not so"),
        ("poly", "standard", "with the polynomial kernel .* where nothing is shifted, which is not so"),
        ("sigmoid", "min and max", "with the sigmoid kernel .* where nothing is shifted"),
    ],
)
def test_a_scaling_that_libsvm_cannot_hold_is_refused(kernel, scalers, match, tmp_path):
    whole = pipeline(scalers, KernelSVC(kernel=kernel, gamma=0.1, **SETTINGS))
    with pytest.raises(ModelFileError, match=match):
        to_libsvm(whole, tmp_path / "m.model")
    assert not list(tmp_path.iterdir())


# ------------------------------------------------------------------------------------------- a model with a scaling


def scaled_model(**parameters):
    model = KernelSVC(**parameters, **SETTINGS)
    model._scaling = Scaling.of(X)
    return model


def test_a_fit_with_a_scaling_is_that_of_scaled_rows():
    model, peer = fit(scaled_model(), X), fit(make_pipeline(StandardScaler(), KernelSVC(**SETTINGS)), X)
    assert decision(model, NEW) == pytest.approx(peer.decision_function(NEW), abs=1e-9)
    assert model.n_iter_ == peer[-1].n_iter_
    assert model.support_vectors_ == pytest.approx(peer[-1].support_vectors_, abs=1e-12)


def test_a_model_with_a_scaling_is_certified_on_the_rows_that_it_was_given(tmp_path):
    model = fit(scaled_model(), X)
    found = again(model, tmp_path).certify(X, targets("labels"))
    assert found.dual_objective == pytest.approx(model.dual_objective_, rel=1e-9)
    assert found.duality_gap == pytest.approx(0.0, abs=1e-6 * found.primal_objective)
    with pytest.raises(CertificateError, match="not the rows"):
        model.certify(model._scaling.apply(X), targets("labels"))
    with pytest.raises(CertificateError, match="holds the scalers of a pipeline"):
        again(pipeline("standard", KernelSVC(**SETTINGS)), tmp_path).certify(X, targets("labels"))


@pytest.mark.parametrize("prediction", [{}, LOCAL])
def test_validation_rows_are_scaled_once(prediction):
    validation = ValidationScore(NEW, fit(scaled_model(), X).predict(NEW))
    model = fit(scaled_model(**prediction).set_callbacks(validation), X)
    assert validation.scores_[-1] == model.score(NEW, validation.y_valid)


def test_warm_starts_go_on_with_the_scaling_and_other_fits_without(tmp_path):
    loaded = again(fit(scaled_model(), X), tmp_path)
    same = fit(loaded.set_params(warm_start=True), X)
    assert same._scaling is not None
    assert same.n_iter_ <= 1
    with pytest.warns(UserWarning, match="scales itself, and this fit takes them as they are given.*make_pipeline"):
        same.set_params(warm_start=False).fit(X, targets("labels"))
    assert decision(same, NEW) == pytest.approx(decision(fit(KernelSVC(**SETTINGS), X), NEW))
    assert clone(loaded)._scaling is None


def test_a_file_with_a_scaling_is_not_for_readers_that_know_none(tmp_path):
    again(fit(scaled_model(), X), tmp_path)
    told = describe(tmp_path / "model.pbk")
    assert (told["format_version"], told["scaling"]) == (2, "shift and scale")
    again(fit(KernelSVC(**SETTINGS), X), tmp_path)
    told = describe(tmp_path / "model.pbk")
    assert (told["format_version"], told["scaling"]) == (1, None)


def test_mapped_rows_are_scaled_a_part_at_a_time(tmp_path):
    np.save(tmp_path / "new.npy", NEW)
    model = fit(scaled_model(memory_limit=8 * 1000), X)
    mapped = np.load(tmp_path / "new.npy", mmap_mode="r")
    assert decision(model, mapped) == pytest.approx(decision(model, NEW))


def test_tensors_are_scaled():
    torch = pytest.importorskip("torch")
    model = fit(scaled_model(), X)
    assert decision(model, torch.as_tensor(NEW)) == pytest.approx(decision(model, NEW))


# ------------------------------------------------------------------------------------------------------- the arithmetic


@pytest.mark.parametrize("factor", [1e-200, 1e-12, 1.0, 1e12, 1e200])
def test_means_and_variances_of_any_size(factor):
    rows = features() * factor
    assert Scaling.of(rows).apply(rows) == pytest.approx(StandardScaler().fit_transform(features()))


def test_constant_features_become_zero():
    rows = np.column_stack((np.full(7, 0.1), np.zeros(7), np.arange(7.0)))
    scaled = Scaling.of(rows).apply(rows)
    assert np.abs(scaled[:, :2]).max() < 1e-15
    assert scaled[:, 2].std() == pytest.approx(1.0)


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int8", "int64", "float32", "float64"])
def test_rows_of_any_type(dtype):
    rows = (np.abs(features()) * 3).astype(dtype)
    expected = StandardScaler().fit_transform(rows.astype(np.float64))
    scaled = Scaling.of(rows).apply(rows)
    assert scaled.dtype == (np.float32 if dtype == "float32" else np.float64)
    assert scaled == pytest.approx(expected, abs=1e-5 if dtype == "float32" else 1e-12)
    largest = Scaling.of(sp.csr_matrix(rows.astype(np.float64)))
    assert largest.scale == pytest.approx(1 / np.where(rows.max(axis=0), rows.max(axis=0), 1).astype(float))


@pytest.mark.parametrize(
    ("shift", "scale"), [([0.0], [0.0]), ([0.0], [-1.0]), ([np.nan], [1.0]), ([0.0], [np.inf]), ([0.0, 0.0], [1.0])]
)
def test_a_scaling_that_makes_no_sense_is_refused(shift, scale):
    with pytest.raises(ValueError, match="A scaling has"):
        Scaling(np.array(shift), np.array(scale))


def test_rows_that_are_far_too_large_are_an_error():
    with pytest.raises(ValueError, match="too large for float64 after scaling"):
        Scaling(np.zeros(1), np.array([1e10])).apply(np.array([[1e300]]))
