"""A search is written as the model that it has chosen."""

import numpy as np
import pytest
from sklearn.datasets import make_moons
from sklearn.model_selection import GridSearchCV

import parablock
from parablock import KernelSVC, KernelSVCCV
from parablock.models import ModelFileError, from_libsvm, to_libsvm, to_onnx, to_sklearn


@pytest.fixture(scope="module")
def moons():
    return make_moons(120, noise=0.2, random_state=0)


@pytest.fixture(scope="module")
def search(moons):
    return KernelSVCCV(Cs=[1, 10], gammas=[0.1, 1], cv=3, random_state=0).fit(*moons)


def test_its_best_model_is_saved(search, moons, tmp_path):
    parablock.save(search, tmp_path / "best.pbk")
    same = parablock.load(tmp_path / "best.pbk")
    assert type(same) is KernelSVC
    assert {"C": same.C, "gamma": same.gamma} == search.best_params_
    assert np.array_equal(same.decision_function(moons[0]), search.decision_function(moons[0]))


def test_so_is_that_of_scikit_learns_search(moons, tmp_path):
    grid = GridSearchCV(KernelSVC(gamma=1.0, random_state=0), {"C": [0.1, 10]}, cv=3).fit(*moons)
    parablock.save(grid, tmp_path / "best.pbk")
    same = parablock.load(tmp_path / "best.pbk")
    assert np.array_equal(same.decision_function(moons[0]), grid.decision_function(moons[0]))


def test_and_exported(search, moons, tmp_path):
    to_libsvm(search, tmp_path / "best.model")
    assert np.array_equal(from_libsvm(tmp_path / "best.model").predict(moons[0]), search.predict(moons[0]))
    assert np.allclose(to_sklearn(search).decision_function(moons[0]), search.decision_function(moons[0]))
    session = pytest.importorskip("onnxruntime").InferenceSession(to_onnx(search).SerializeToString())
    label = session.run(["label"], {"X": moons[0].astype(np.float32)})[0]
    assert np.mean(label == search.predict(moons[0])) > 0.98


def test_a_search_without_a_model_is_refused(moons, tmp_path):
    with pytest.raises(ValueError, match="not fitted"):
        parablock.save(KernelSVCCV(), tmp_path / "none.pbk")
    search = KernelSVCCV(Cs=[1], gammas=[1], cv=3, refit=False).fit(*moons)
    with pytest.raises(ModelFileError, match=r"KernelSVCCV was fitted with refit=False.*no best_estimator_"):
        parablock.save(search, tmp_path / "none.pbk")
    assert not any(tmp_path.iterdir())
