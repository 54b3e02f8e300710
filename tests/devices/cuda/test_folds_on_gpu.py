"""Cross-validation on a GPU: folds as outputs, with the scores of the CPU."""

import pytest
from sklearn.datasets import make_moons

from parablock import KernelSVCCV

pytestmark = pytest.mark.slow  # runs interpreted kernels

pytest.importorskip("torch")
pytest.importorskip("triton")


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_the_scores_are_those_of_the_cpu(loss):
    X, y = make_moons(24, noise=0.3, random_state=0)
    options = {"scoring": "roc_auc", "tol": 1e-2, "n_jobs": 1, "random_state": 0, "refit": False}
    model = KernelSVCCV([0.5, 1.0], [1.0], cv=2, loss=loss, **options)
    found, expected = (model.set_params(device=device).fit(X, y).cv_results_ for device in ("cuda", "cpu"))
    assert found["mean_test_score"] == pytest.approx(expected["mean_test_score"], abs=1e-3)
