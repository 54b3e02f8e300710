"""With an intercept the coefficients sum to zero, however far the solver goes."""

import pytest

from tests.small_problems import CASES, full_coef, optimum


@pytest.mark.parametrize("tol", [1e-5, 1e-7, 1e-9])
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_coefficients_sum_to_zero_at_every_tolerance(case, tol):
    model = case.fit(tol=tol, n_blocks=4)
    assert model.dual_coef_.sum() == pytest.approx(0, abs=1e-10)
    assert case.objective(full_coef(model)[0]) == pytest.approx(optimum(case.name, True), rel=1e-6)
