"""The GPU's descent in blocks, against the CPU's."""

# ruff: noqa: E402
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="the GPU's descent works on torch tensors")
pytest.importorskip("triton", reason="the GPU's descent is written in Triton")

from parablock.devices import BlockRule, CpuDevice
from parablock.devices.cuda.descent import LARGEST_BLOCK, Limits, descend
from parablock.devices.cuda.losses import spec_of_loss
from parablock.kernels import RBF
from parablock.problem import Problem
from tests.oracle import LOSSES, dual_sum, random_coef, random_targets, rbf

pytestmark = pytest.mark.slow  # runs interpreted kernels

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KERNEL = RBF(0.5)
LIMITS = Limits(pairs=True, fraction=0.0, floor=3e-3)
pairs_or_not = pytest.mark.parametrize("pairs", [False, True])
every_loss = pytest.mark.parametrize("name", LOSSES)


def tensor(array, dtype=torch.float64):
    return torch.tensor(np.ascontiguousarray(array), dtype=dtype, device=DEVICE)


class Case:
    """Some blocks of unequal sizes, each of which is a problem with its own outputs at some point of their boxes."""

    def __init__(self, name="hinge", sizes=(20, 13), n_outputs=1, pairs=True, C=1.0, seed=0):
        rng = np.random.default_rng(seed)
        self.n, self.size = sum(sizes), max(sizes)
        self.X = rng.normal(size=(self.n, 3)).astype(np.float32)
        self.K = rbf(self.X.astype(np.float64), self.X.astype(np.float64), KERNEL.gamma)
        weight = C * rng.uniform(0.5, 2.0, size=(n_outputs, self.n))
        self.problem = Problem.build(LOSSES[name], random_targets(name, rng, (n_outputs, self.n)), weight, pairs)
        self.coef = self.problem.feasible(random_coef(rng, self.problem.lower, self.problem.upper))
        self.decision = self.coef @ self.K
        self.blocks = np.split(np.arange(self.n), np.cumsum(sizes)[:-1])
        self.programs = [(block, output) for block in range(len(sizes)) for output in range(n_outputs)]

    def solve(self, limits, dtype=torch.float32):
        matrices = np.zeros((len(self.blocks), self.size, self.size))
        for matrix, rows in zip(matrices, self.blocks):
            matrix[: len(rows), : len(rows)] = self.K[np.ix_(rows, rows)]
        which = torch.tensor([block for block, _ in self.programs], device=DEVICE)
        arrays = [self._padded(part) for part in (self.coef, self.decision, self.problem.target, self.problem.weight)]
        loss = spec_of_loss(self.problem.loss)
        solved = descend(loss, tensor(matrices, dtype), which, *(tensor(array) for array in arrays), limits)
        np.testing.assert_array_equal(solved.coef.cpu().numpy()[arrays[3] == 0], 0.0)
        assert np.all(solved.wish.cpu().numpy()[arrays[3] == 0] == -np.inf)
        return solved

    def steps(self, solved):
        """Of each program: block's rows, output, step, wishes."""
        for number, (block, output) in enumerate(self.programs):
            rows = self.blocks[block]
            part = solved.coef[number].cpu().numpy()[: len(rows)] - self.coef[output, rows]
            yield rows, output, part, solved.wish[number].cpu().numpy()[: len(rows)]

    def solve_on_cpu(self, limits):
        device = CpuDevice(1, 1 << 30)
        outputs = range(len(self.coef))
        rule = BlockRule(outputs, "greedy", limits.pairs, limits.fraction, limits.floor, limits.max_updates, 0)
        with device.session():
            samples, point = device.samples(self.X, KERNEL), (self.coef, self.decision)
            return device.solve_blocks(KERNEL, samples, self.problem, point, self.blocks, rule)

    def value(self, rows, output, d):
        """How much the step changes the model of its block."""
        coef, target, weight = (
            self.coef[output, rows],
            self.problem.target[output, rows],
            self.problem.weight[output, rows],
        )
        loss = self.problem.loss
        terms = dual_sum(loss, coef + d, target, weight) - dual_sum(loss, coef, target, weight)
        return 0.5 * d @ self.K[np.ix_(rows, rows)] @ d + self.decision[output, rows] @ d + terms

    def violation(self, rows, output, d, pairs):
        problem = Problem.build(
            self.problem.loss, self.problem.target[output, rows], self.problem.weight[output, rows], pairs
        )
        decision, after = self.decision[output, rows] + self.K[np.ix_(rows, rows)] @ d, self.coef[output, rows] + d
        for bound in problem.lower[0], problem.upper[0]:  # what has reached a bound is exactly there
            after = np.where(np.abs(after - bound) <= 1e-14 * np.abs(after), bound, after)
        return problem.measure(0, after, decision).violation

    def _padded(self, part):
        padded = np.zeros((len(self.programs), self.size))
        for row, (block, output) in zip(padded, self.programs):
            row[: len(self.blocks[block])] = part[output, self.blocks[block]]
        return padded


@every_loss
@pairs_or_not
def test_the_same_solution_as_on_the_cpu(name, pairs):
    case, limits = Case(name, pairs=pairs), LIMITS._replace(pairs=pairs)
    solved, reference = case.solve(limits), case.solve_on_cpu(limits)
    for (rows, output, d, wish), step, bias in zip(case.steps(solved), reference, solved.bias.cpu().numpy()):
        value, expected = case.value(rows, output, d), case.value(rows, output, step.step[0])
        assert expected < 0
        assert value == pytest.approx(expected, rel=1e-5)
        assert wish.max() <= limits.floor
        assert case.violation(rows, output, d, pairs) <= limits.floor + 1e-5
        np.testing.assert_allclose(d, step.step[0], atol=0.02)
        assert bias == pytest.approx(step.bias[0], abs=limits.floor)
        np.testing.assert_allclose(np.maximum(wish, 0), np.maximum(step.wish[0], 0), atol=2 * limits.floor)


@every_loss
@pairs_or_not
def test_about_as_many_updates_as_on_the_cpu(name, pairs):
    # From zero, where fits begin: for the logistic loss an end of the box, with an enormous curvature.
    case, limits = Case(name, pairs=pairs), Limits(pairs, fraction=0.03, floor=1e-2)
    case.coef, case.decision = np.zeros_like(case.coef), np.zeros_like(case.decision)
    solved, reference = case.solve(limits), case.solve_on_cpu(limits)
    for found, step in zip(solved.updates.tolist(), reference):
        assert found == pytest.approx(step.updates, rel=0.2, abs=2)


@every_loss
@pairs_or_not
def test_steps_stay_in_the_box_and_pairs_keep_the_sum(name, pairs):
    case = Case(name, pairs=pairs, C=0.3)
    solved = case.solve(LIMITS._replace(pairs=pairs, fraction=0.1))
    problem = case.problem
    for number, (rows, output, d, _) in enumerate(case.steps(solved)):
        after = solved.coef[number].cpu().numpy()[: len(rows)]
        assert np.all((after >= problem.lower[output, rows]) & (after <= problem.upper[output, rows]))
        assert np.any(d != 0)
        if pairs:
            assert abs(d.sum()) <= 1e-13


def test_the_first_updates_are_those_of_the_cpu():
    case, limits = Case(sizes=(128,), C=10.0), LIMITS._replace(max_updates=12)
    ((_, _, d, _),), (step,) = case.steps(case.solve(limits)), case.solve_on_cpu(limits)
    assert np.count_nonzero(d) == np.count_nonzero(step.step[0])
    np.testing.assert_allclose(d, step.step[0], rtol=1e-4, atol=1e-6)


@pairs_or_not
def test_several_outputs_share_a_matrix(pairs):
    case, limits = Case("squared_hinge", (18, 9), n_outputs=3, pairs=pairs), LIMITS._replace(pairs=pairs, fraction=0.05)
    solved, reference = case.solve(limits), case.solve_on_cpu(limits)
    assert int(solved.updates.sum()) == pytest.approx(sum(step.updates for step in reference), rel=0.1)
    for (rows, output, d, _), (block, _) in zip(case.steps(solved), case.programs):
        assert case.value(rows, output, d) == pytest.approx(
            case.value(rows, output, reference[block].step[output]), rel=1e-4
        )


@pairs_or_not
def test_a_solved_block_is_left_alone(pairs):
    case, limits = Case(pairs=pairs), LIMITS._replace(pairs=pairs)
    for rows, output, d, _ in list(case.steps(case.solve(limits))):
        case.coef[output, rows] += d
    case.coef = np.clip(case.coef, case.problem.lower, case.problem.upper)
    for rows in case.blocks:  # each block as if the others had not moved
        case.decision[:, rows] = 0.0
    before = case.coef.copy()
    start = Case(pairs=pairs)
    for rows, output in ((rows, 0) for rows in case.blocks):
        moved = case.coef[output, rows] - start.coef[output, rows]
        case.decision[output, rows] = start.decision[output, rows] + case.K[np.ix_(rows, rows)] @ moved
    solved = case.solve(limits._replace(floor=limits.floor * 1.01))
    assert not solved.updates.any()
    for _, _, d, _ in case.steps(solved):
        np.testing.assert_array_equal(d, 0.0)
    np.testing.assert_array_equal(case.coef, before)


@pairs_or_not
def test_no_more_updates_than_allowed(pairs):
    case = Case("logistic", pairs=pairs)
    for limit in (0, 3):
        solved = case.solve(LIMITS._replace(pairs=pairs, max_updates=limit))
        assert solved.updates.tolist() == [limit] * 2
        for _, _, d, _ in case.steps(solved):
            assert np.count_nonzero(d) <= 2 * limit


@pairs_or_not
def test_violation_falls_to_the_asked_share(pairs):
    case = Case(pairs=pairs)
    for rows, output, d, _ in case.steps(case.solve(Limits(pairs, fraction=0.1, floor=0.0))):
        assert case.violation(rows, output, d, pairs) <= 0.1001 * case.violation(rows, output, 0 * d, pairs)


@pairs_or_not
@pytest.mark.parametrize("name", ["hinge", "quantile"])
def test_rounding_is_not_chased_for_ever(name, pairs):
    case = Case(name, (12,), pairs=pairs, C=0.3)
    solved = case.solve(Limits(pairs, fraction=0.0, floor=0.0))
    assert int(solved.updates[0]) < 1000
    for rows, output, d, _ in case.steps(solved):
        assert case.violation(rows, output, d, pairs) <= 1e-5


@pairs_or_not
def test_half_precision_matrices_come_close(pairs):
    case, limits = Case(pairs=pairs), LIMITS._replace(pairs=pairs, floor=1e-2)
    solved, reference = case.solve(limits, torch.float16), case.solve_on_cpu(limits)
    for (rows, output, d, _), step in zip(case.steps(solved), reference):
        assert case.value(rows, output, d) == pytest.approx(case.value(rows, output, step.step[0]), rel=1e-3)


def test_equal_rows_of_opposite_labels():
    # The pair's curvature is zero: the step goes to the end of the box.
    case = Case(sizes=(6,))
    case.K = np.ones((6, 6))
    case.problem.target[0] = [1, -1, 1, -1, 1, -1]
    case.problem = Problem.build(case.problem.loss, case.problem.target, np.ones((1, 6)), True)
    case.coef, case.decision = np.zeros((1, 6)), np.zeros((1, 6))
    for _, _, d, _ in case.steps(case.solve(LIMITS)):
        np.testing.assert_array_equal(d, case.problem.target[0])


def test_blocks_of_one_row():
    single = Case("squared_error", (1, 1), pairs=False)
    for rows, output, d, _ in single.steps(single.solve(LIMITS._replace(pairs=False))):
        assert single.violation(rows, output, d, False) <= 1e-5
    for _, _, d, _ in single.steps(single.solve(LIMITS)):  # nobody to pair with
        assert not d.any()


def test_blocks_that_are_too_large_are_refused():
    size = LARGEST_BLOCK + 1
    ones = torch.ones((1, size), dtype=torch.float64, device=DEVICE)
    with pytest.raises(ValueError, match="at most"):
        descend(spec_of_loss(LOSSES["hinge"]), torch.empty((1, 1, 1)), ones[:, 0], ones, ones, ones, ones, LIMITS)
