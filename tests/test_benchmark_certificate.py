"""The benchmark of certificates on a few bundled rows, and that it finds what is wrong."""

import dataclasses
import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from benchmarks import certificate
from benchmarks.exact import Values, values_of
from parablock import KernelSVC
from tests.small_problems import CASES, full_coef, rbf

BUNDLED = ["covtype", "covtype7", "diabetes", "breast_cancer", "iris", "wine"]


@pytest.mark.parametrize("name", CASES)
def test_values_from_the_formulas(name):
    """Of NumPy twice: `tests.small_problems` has the formulas too, in another form and for a whole kernel matrix."""
    case = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = case.fit(max_iter=1, n_blocks=4)
    coef, found = full_coef(model)[0], values_of(model, case.X, case.y)
    assert coef.any()
    assert found.dual == pytest.approx(-case.objective(coef), rel=1e-12)
    assert found.primal >= found.dual
    decision = rbf(case.X) @ coef
    if name == "squared_error":
        loss = case.estimator.C * np.sum((case.y - decision - model.intercept_) ** 2)
        assert found.primal == pytest.approx(0.5 * coef @ decision + loss, rel=1e-12)
        gradient = decision + case.slope(coef, case.y)
        assert found.violation == pytest.approx(gradient.max() - gradient.min(), abs=1e-12)


def test_nothing_is_wrong_on_bundled_data(capsys):
    assert certificate.main([*BUNDLED, "--rows", "120"]) == 0
    printed = capsys.readouterr()
    assert printed.out.splitlines()[-1] == "nothing is wrong"
    assert len(printed.out.splitlines()) == 2 + len(BUNDLED) * 3 * 2
    assert not printed.err


def test_a_wrong_certificate_ends_the_program_with_an_error(monkeypatch, capsys):
    original = KernelSVC.certify

    def flattering(self, X, y):
        said = original(self, X, y)
        return dataclasses.replace(said, dual_objective=said.dual_objective * (1 + 2e-6))

    monkeypatch.setattr(KernelSVC, "certify", flattering)
    assert certificate.main(["iris", "--rows", "60"]) == 1
    assert "WRONG: iris, float64: certify is off by 2.0e-06 of the objective" in capsys.readouterr().err


def test_a_float32_fit_that_is_worse_is_found():
    model = KernelSVC().fit([[0.0], [1.0]], [0, 1])
    said = model.certify([[0.0], [1.0]], [0, 1])
    true = Values(said.primal_objective, said.dual_objective, said.violation)
    good = certificate.Line(true.dual, 0.0, true, said, "float64")
    for primal, dual, name in ((1.0, 0.99, "dual"), (1.02, 1.0, "primal")):
        worse = Values(primal * true.primal, dual * true.dual, 0.0)
        found = list(certificate.faults("data", good, dataclasses.replace(good, true=worse)))
        assert f"the {name} value in float32" in found[0]
    assert not list(certificate.faults("data", good, good))


def test_unknown_names_are_refused(capsys):
    with pytest.raises(SystemExit):
        certificate.main(["no such data"])
    assert "there are covtype" in capsys.readouterr().err
