"""A loss of the user's own: four plain functions are all that training needs."""

import math
import os
import pickle
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from parablock import Loss, solve
from parablock.kernels import RBF
from parablock.problem import Problem
from tests.oracle import LOSSES, rbf, subproblem_minimum


class Huber(Loss):
    """C e^2 for errors e = y - z up to the threshold, and its tangent beyond: robust regression.

    primal  C e^2, or C (2 t |e| - t^2) where |e| > t      dual  g(c) = -y c + c^2 / (4 C),   |c| <= 2 C t
    """

    piecewise_quadratic = True

    def __init__(self, threshold=1.0):
        self.parameter = float(threshold)

    @staticmethod
    def dual(coef, target, weight, parameter):
        return -target * coef + coef * coef / (4.0 * weight)

    @staticmethod
    def primal(prediction, target, weight, parameter):
        error = abs(target - prediction)
        return weight * (error * error if error <= parameter else parameter * (2.0 * error - parameter))

    @staticmethod
    def bounds(target, weight, parameter):
        return -2.0 * weight * parameter, 2.0 * weight * parameter

    @staticmethod
    def slopes(coef, target, weight, parameter):
        slope, bound = -target + coef / (2.0 * weight), 2.0 * weight * parameter
        left = -math.inf if coef <= -bound else slope
        right = math.inf if coef >= bound else slope
        return left, right, 1.0 / (2.0 * weight)


class SmoothHuber(Huber):
    """The same loss without the claim that its dual is piecewise quadratic."""

    piecewise_quadratic = False


def regression(n=40):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 2))
    return X, np.sin(2 * X[:, 0]) + rng.standard_t(df=1.5, size=n)  # some errors are large


def least_objective(X, y, C, threshold, zero_sum):
    nothing = np.zeros(len(y))
    K = rbf(X, X, 0.7)
    return subproblem_minimum(Huber(threshold), K, nothing, nothing, y, np.full(len(y), C), zero_sum)


@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss", [Huber, SmoothHuber])  # by exact steps, and by Armijo's rule
def test_users_loss_reaches_the_optimum(loss, fit_intercept):
    X, y = regression()
    trained = solve(X, y, loss(0.5), RBF(0.7), C=2.0, fit_intercept=fit_intercept, n_blocks=3, tol=1e-8)
    assert trained.solution.reason == "converged"
    least = least_objective(X, y, 2.0, 0.5, fit_intercept)
    assert trained.solution.state.objective == pytest.approx(least, rel=1e-9)
    assert 0 <= trained.solution.state.duality_gap <= 1e-6 * abs(least)


def test_users_loss_bounds_the_influence_of_outliers():
    X, y = regression()
    coef = solve(X, y, Huber(0.5), RBF(0.7), C=2.0, fit_intercept=False).solution.state.coef[0]
    assert np.abs(coef).max() == 2.0  # 2 C t
    assert np.any(np.abs(coef) < 2.0)


def test_users_loss_with_a_wide_threshold_is_the_squared_error():
    X, y = regression()
    wide = solve(X, y, Huber(1e6), RBF(0.7), C=2.0, tol=1e-9)
    squared = solve(X, y, LOSSES["squared_error"], RBF(0.7), C=2.0, tol=1e-9)
    np.testing.assert_allclose(wide.solution.state.coef, squared.solution.state.coef, atol=1e-7)


def test_users_loss_can_be_pickled_after_use():
    X, y = regression()
    loss = Huber(0.5)
    first = solve(X, y, loss, RBF(0.7))
    again = solve(X, y, pickle.loads(pickle.dumps(loss)), RBF(0.7))
    np.testing.assert_array_equal(first.solution.state.coef, again.solution.state.coef)


def test_loss_typed_at_a_prompt_works():
    source = "\n".join(
        [
            "from parablock import Loss",
            "class Absolute(Loss):",
            "    piecewise_quadratic = True",
            "    @staticmethod",
            "    def dual(coef, target, weight, parameter): return -target * coef",
            "    @staticmethod",
            "    def primal(prediction, target, weight, parameter): return weight * abs(target - prediction)",
            "    @staticmethod",
            "    def bounds(target, weight, parameter): return -weight, weight",
            "    @staticmethod",
            "    def slopes(coef, target, weight, parameter):",
            "        left = -float('inf') if coef <= -weight else -target",
            "        right = float('inf') if coef >= weight else -target",
            "        return left, right, 0.0",
        ]
    )
    namespace = {"__name__": "__main__"}
    exec(source, namespace)  # no file behind it, as at a prompt
    X, y = regression()
    trained = solve(X, y, namespace["Absolute"](), RBF(0.7), C=1.0, tol=1e-8)
    half = solve(X, y, type(LOSSES["quantile"])(0.5), RBF(0.7), C=2.0, tol=1e-8)  # C |e| = 2 C (half of |e|)
    assert trained.solution.state.objective == pytest.approx(half.solution.state.objective, rel=1e-9)


OWN = """
import math
from parablock import Loss

class Own(Loss):
    @staticmethod
    def dual(coef, target, weight, parameter):
        return -FACTOR * target * coef

    @staticmethod
    def primal(prediction, target, weight, parameter):
        return weight * abs(target - prediction)

    @staticmethod
    def bounds(target, weight, parameter):
        return -weight, weight

    @staticmethod
    def slopes(coef, target, weight, parameter):
        return -math.inf if coef <= -weight else -target, math.inf if coef >= weight else -target, 0.0
"""

SUM = """
import numpy as np
from own import Own
from parablock.problem import Problem

problem = Problem.build(Own(), np.ones(20), np.ones(20), False)
print(problem.dual_sum(0, np.ones(20)), Own().dual_of_rows.cache_hits, Own().slopes_of_rows.cache_hits)
"""


@pytest.mark.slow
def test_users_loss_is_compiled_again_when_its_file_has_changed(tmp_path):
    path = tmp_path / "own.py"

    def run(factor, written):
        path.write_text(OWN.replace("FACTOR", factor))
        os.utime(path, (written, written))
        python_path = os.pathsep.join([str(tmp_path), *sys.path])
        environment = {**os.environ, "PYTHONPATH": python_path, "NUMBA_CACHE_DIR": str(tmp_path)}
        done = subprocess.run([sys.executable, "-c", SUM], capture_output=True, text=True, env=environment)
        assert done.returncode == 0, done.stderr
        return done.stdout.split()

    assert run("1.0", 1e9) == ["-20.0", "0", "0"]
    assert run("1.0", 1e9) == ["-20.0", "1", "1"]
    assert run("3.0", 1.1e9) == ["-60.0", "0", "0"]


class Reciprocal(Huber):
    @staticmethod
    def dual(coef, target, weight, parameter):
        return target / coef


def test_a_row_that_divides_by_zero_leaves_the_others_their_results():
    problem = Problem.build(Huber(), np.array([1.0, 1.0, 3.0]), np.ones(3), False)
    broken = replace(problem, loss=Reciprocal())
    assert broken.dual_sum(0, np.array([1.0, 0.0, 1.0])) == math.inf
    assert broken.dual_sum(0, np.array([0.5, 1.0, 1.0])) == 6.0


def test_loss_that_lacks_a_function_cannot_be_made():
    class Unfinished(Loss):
        @staticmethod
        def dual(coef, target, weight, parameter):
            return 0.0

    with pytest.raises(TypeError, match="abstract"):
        Unfinished()
