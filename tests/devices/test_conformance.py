"""What every device must do, against NumPy and SciPy oracles.

The devices under test are the parameters of the fixture `make_device`: a new one is added there, in one place.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from parablock.devices import BlockRule
from parablock.kernels import RBF, make_kernel
from parablock.problem import Problem
from tests.oracle import LOSSES, dual_sum, random_coef, random_targets, rbf, subproblem_minimum

KERNEL = RBF(0.5)
EXACT = BlockRule(outputs=[0], choice="greedy", pairs=False, fraction=0.0, floor=1e-9, max_updates=None, seed=0)
choices = pytest.mark.parametrize("choice", ["greedy", "random", "cyclic"])
pairs_or_not = pytest.mark.parametrize("pairs", [False, True])
every_loss = pytest.mark.parametrize("name", LOSSES)


class Case:
    """A problem with several outputs at some point in its box, and its blocks."""

    def __init__(self, name="hinge", n=24, n_outputs=1, n_blocks=3, dtype=np.float64, zero_sum=False, C=1.0):
        rng = np.random.default_rng(0)
        self.X = rng.normal(size=(n, 3)).astype(dtype)
        self.K = rbf(self.X.astype(np.float64), self.X.astype(np.float64), KERNEL.gamma)
        self.loss = LOSSES[name]
        weight = C * rng.uniform(0.5, 2.0, size=(n_outputs, n))
        self.problem = Problem.build(self.loss, random_targets(name, rng, (n_outputs, n)), weight, zero_sum)
        coef = random_coef(rng, self.problem.lower, self.problem.upper)
        self.coef = self.problem.feasible(coef)
        self.decision = self.coef @ self.K
        self.blocks = [np.sort(part) for part in np.array_split(rng.permutation(n), n_blocks)]

    def solve(self, device, rule, keep=False, samples=None, blocks=None):
        samples = device.samples(self.X, KERNEL) if samples is None else samples
        point = (self.coef.copy(), self.decision.copy())
        blocks = self.blocks if blocks is None else blocks
        steps = device.solve_blocks(KERNEL, samples, self.problem, point, blocks, rule, keep)
        np.testing.assert_array_equal(point[0], self.coef, "the point must stay as it is")
        np.testing.assert_array_equal(point[1], self.decision, "the point must stay as it is")
        return steps

    def parts(self, output, rows):
        """A block's arrays as the oracles take them."""
        K, target, weight = self.K[np.ix_(rows, rows)], self.problem.target, self.problem.weight
        arrays = (array[output, rows] for array in (self.coef, self.decision, target, weight))
        return K, *arrays

    def value(self, output, step):
        """How much the step changes the model of its block."""
        K, coef, decision, target, weight = self.parts(output, step.rows)
        d = step.step[output]
        terms = dual_sum(self.loss, coef + d, target, weight) - dual_sum(self.loss, coef, target, weight)
        return 0.5 * d @ K @ d + decision @ d + terms


def samples_of(device, kernel, n, seed=0, format=np.asarray):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return X, device.samples(format(X), kernel)


# -------------------------------------------------------------------------------------------- kernel products


@pytest.mark.parametrize("format", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("n_outputs", [1, 4])
def test_kernel_dot_of_several_outputs(device, format, n_outputs):
    X, rows = samples_of(device, KERNEL, 70, 0, format)
    Z, columns = samples_of(device, KERNEL, 50, 1, format)
    coef = np.random.default_rng(2).normal(size=(n_outputs, 50))
    values = device.kernel_dot(KERNEL, rows, columns, coef)
    np.testing.assert_allclose(values, coef @ rbf(Z, X, KERNEL.gamma), atol=1e-12)


def test_kernel_dot_without_columns_is_zero(device):
    _, rows = samples_of(device, KERNEL, 7)
    values = device.kernel_dot(KERNEL, rows, rows.take(np.empty(0, dtype=int)), np.empty((2, 0)))
    np.testing.assert_array_equal(values, np.zeros((2, 7)))


def test_kernel_evaluations_count_every_value_once(make_device):
    device = make_device()
    _, rows = samples_of(device, KERNEL, 70)
    columns = rows.take(np.arange(30))
    assert device.kernel_evaluations == 0
    device.gram(KERNEL, rows, columns)
    assert device.kernel_evaluations == 70 * 30
    device.kernel_dot(KERNEL, rows, columns, np.ones((5, 30)))  # several outputs share their kernel values
    assert device.kernel_evaluations == 2 * 70 * 30


def test_kernel_evaluations_of_blocks_are_their_matrices(make_device):
    case, device = Case(n_outputs=2), make_device()
    case.solve(device, replace(EXACT, outputs=[0, 1]))
    assert device.kernel_evaluations == sum(len(block) ** 2 for block in case.blocks)


@pytest.mark.parametrize("format", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("memory_limit", [1, 1 << 18, 1 << 30])
def test_column_dot_however_much_it_can_keep(make_device, format, memory_limit):
    device, rng = make_device(memory_limit=memory_limit), np.random.default_rng(1)
    X, samples = samples_of(device, KERNEL, 300, format=format)
    K = rbf(X, X, KERNEL.gamma)
    for count in (40, 0, 120, 300):  # some columns come again
        rows, coef = rng.choice(300, count, replace=False), rng.normal(size=(3, count))
        values = device.column_dot(KERNEL, samples, samples, rows, coef)
        np.testing.assert_allclose(values, coef @ K[rows], atol=1e-11)


@pytest.mark.parametrize("format", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("memory_limit", [1, 1 << 18, 1 << 30])
def test_column_dot_of_samples_that_follow_one_another(make_device, format, memory_limit):
    device, rng = make_device(memory_limit=memory_limit), np.random.default_rng(1)
    X, everyone = samples_of(device, KERNEL, 300, format=format)
    K = rbf(X, X, KERNEL.gamma)
    order = rng.permutation(300)
    first, *more = (everyone.take(order[:count]) for count in (100, 107, 180))
    device.extend(KERNEL, everyone, [first], everyone, np.arange(0), (300, 200))
    rows, coef = rng.choice(300, 50, replace=False), rng.normal(size=(2, 50))
    values = device.column_dot(KERNEL, first, everyone, rows, coef, iter(more))
    np.testing.assert_allclose(values, coef @ K[rows][:, order[:180]], atol=1e-11)
    for count in (50, 300):  # from now on columns are as long as all of them
        rows, coef = np.arange(count), rng.normal(size=(2, count))
        values = device.column_dot(KERNEL, more[-1], everyone, rows, coef)
        np.testing.assert_allclose(values, coef @ K[rows][:, order[:180]], atol=1e-11)


def test_column_dot_in_single_precision_sums_in_double(device):
    # Large coefficients that cancel: their sum must not be rounded to single precision.
    X = np.random.default_rng(0).normal(size=(400, 3)).astype(np.float32)
    samples = device.samples(X, KERNEL)
    coef = np.tile([1e4, -1e4], 200)[None, :]
    expected = coef @ device.gram(KERNEL, samples, samples).astype(np.float64)
    values = device.column_dot(KERNEL, samples, samples, np.arange(400), coef)
    np.testing.assert_allclose(values, expected, atol=1e-6 * 1e4)


@pytest.mark.parametrize("format", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("kernel", ["rbf", "laplacian"])
def test_number_of_threads_does_not_change_products(make_device, format, kernel):
    kernel = make_kernel(kernel, 0.5)
    results = []
    for n_jobs in (1, 2):
        device = make_device(n_jobs)
        _, samples = samples_of(device, kernel, 4500, format=format)
        columns = samples.take(np.arange(100))
        coef = np.random.default_rng(1).normal(size=(2, 100))
        product = device.kernel_dot(kernel, samples, columns, coef)
        results.append((product, device.column_dot(kernel, samples, samples, np.arange(100), coef)))
    for one, two in zip(*results):
        np.testing.assert_array_equal(one, two)


# ------------------------------------------------------------------------------------------------------ blocks


@every_loss
@choices
@pairs_or_not
def test_every_block_reaches_the_optimum_of_its_model(device, name, choice, pairs):
    case = Case(name, zero_sum=pairs)
    for step, rows in zip(case.solve(device, replace(EXACT, choice=choice, pairs=pairs)), case.blocks):
        np.testing.assert_array_equal(step.rows, rows)
        least = subproblem_minimum(case.loss, *case.parts(0, rows), zero_sum=pairs)
        assert least < 0
        assert case.value(0, step) == pytest.approx(least, rel=1e-9)


@every_loss
@choices
def test_pairs_keep_the_sum_of_every_block(device, name, choice):
    case = Case(name, n=40)
    for step in case.solve(device, replace(EXACT, choice=choice, pairs=True)):
        assert np.any(step.step != 0)
        assert abs(step.step.sum()) <= 1e-10


@every_loss
@pairs_or_not
def test_steps_stay_in_the_box(device, name, pairs):
    case = Case(name, n=40, zero_sum=pairs)
    for step in case.solve(device, replace(EXACT, pairs=pairs)):
        after = case.coef[0, step.rows] + step.step[0]
        tiny = 1e-15 * np.abs(case.coef[0, step.rows])  # of adding the step
        assert np.all(after >= case.problem.lower[0, step.rows] - tiny)
        assert np.all(after <= case.problem.upper[0, step.rows] + tiny)


@choices
@pairs_or_not
def test_single_precision_comes_close(device, choice, pairs):
    case = Case(dtype=np.float32, zero_sum=pairs)
    for step in case.solve(device, replace(EXACT, choice=choice, pairs=pairs, floor=1e-4)):
        least = subproblem_minimum(case.loss, *case.parts(0, step.rows), zero_sum=pairs)
        assert case.value(0, step) == pytest.approx(least, rel=1e-4)
        if pairs:
            assert abs(step.step.sum()) <= 1e-10


@pytest.mark.parametrize("format", [np.asarray, sp.csr_matrix])
def test_each_output_is_solved_as_if_it_were_alone(device, format):
    case = Case("squared_hinge", n_outputs=3)
    samples = device.samples(format(case.X), KERNEL)
    steps = case.solve(device, replace(EXACT, outputs=[0, 1, 2]), samples=samples)
    for output in range(3):
        for step in steps:
            least = subproblem_minimum(case.loss, *case.parts(output, step.rows), zero_sum=False)
            assert case.value(output, step) == pytest.approx(least, rel=1e-9)


@pairs_or_not
def test_outputs_that_the_rule_leaves_out_stay(device, pairs):
    case = Case(n_outputs=3)
    for step in case.solve(device, replace(EXACT, outputs=[0, 2], pairs=pairs)):
        assert step.step.shape == (3, len(step.rows))
        np.testing.assert_array_equal(step.step[1], 0.0)
        np.testing.assert_array_equal(np.isnan(step.bias), [False, True, False])
        assert np.any(step.step[0] != 0)
        assert np.any(step.step[2] != 0)


def test_bias_of_a_block_makes_its_free_variables_fit(device):
    # Hinge: a free variable lies on the margin, so prediction plus intercept equals its label.
    case = Case("hinge", n=40, n_blocks=2, zero_sum=True)
    for step in case.solve(device, replace(EXACT, pairs=True)):
        K, coef, decision, target, _ = case.parts(0, step.rows)
        after, prediction = coef + step.step[0], decision + K @ step.step[0]
        lower, upper = case.problem.lower[0, step.rows], case.problem.upper[0, step.rows]
        free = (after > lower + 1e-9) & (after < upper - 1e-9)
        assert free.any()
        np.testing.assert_allclose(prediction[free] + step.bias[0], target[free], atol=1e-7)


def test_bias_is_zero_without_pairs(device):
    for step in Case(n_outputs=2).solve(device, replace(EXACT, outputs=[0, 1])):
        np.testing.assert_array_equal(step.bias, 0.0)


@choices
@pairs_or_not
def test_violation_falls_to_the_asked_share(device, choice, pairs):
    case = Case("hinge", n=60, n_blocks=1, zero_sum=pairs)
    first = violation(case, np.zeros(60), pairs)
    loose = case.solve(device, replace(EXACT, choice=choice, pairs=pairs, fraction=0.1))[0]
    tight = case.solve(device, replace(EXACT, choice=choice, pairs=pairs, fraction=0.001))[0]
    assert violation(case, loose.step[0], pairs) <= 0.1 * first * (1 + 1e-9)
    assert violation(case, tight.step[0], pairs) <= 0.001 * first * (1 + 1e-9)
    assert loose.updates < tight.updates


def violation(case, step, pairs):
    """Largest violation of the only block, from the problem's own measure."""
    problem = replace(case.problem, intercept=pairs)
    return problem.measure(0, case.coef[0] + step, case.decision[0] + case.K @ step).violation


@choices
@pairs_or_not
def test_a_violated_block_gets_at_least_one_update_and_no_more_than_allowed(device, choice, pairs):
    case = Case("logistic", n=60)
    for limit in (1, 5):
        rule = replace(EXACT, choice=choice, pairs=pairs, max_updates=limit)
        for step in case.solve(device, rule):
            assert step.updates == limit
            assert 1 <= np.count_nonzero(step.step) <= (2 if pairs else 1) * limit
            assert case.value(0, step) < 0


@choices
@pairs_or_not
def test_a_solved_block_is_left_alone(device, choice, pairs):
    case, rule = Case(n_blocks=1, zero_sum=pairs), replace(EXACT, choice=choice, pairs=pairs)
    (step,) = case.solve(device, rule)
    case.coef[0, step.rows] += step.step[0]
    case.coef = np.clip(case.coef, case.problem.lower, case.problem.upper)
    case.decision = case.coef @ case.K
    (step,) = case.solve(device, replace(rule, floor=1e-6))
    assert step.updates == 0
    assert not step.step.any()


@choices
@pairs_or_not
def test_same_seed_gives_the_same_steps(device, choice, pairs):
    case = Case("epsilon_insensitive", n=60)
    rule = replace(EXACT, choice=choice, pairs=pairs, fraction=0.1, seed=5)
    for first, again in zip(case.solve(device, rule), case.solve(device, rule)):
        np.testing.assert_array_equal(first.step, again.step)
        assert first.updates == again.updates


def test_another_seed_makes_other_random_choices(device):
    case = Case("squared_error", n=60)
    rule = replace(EXACT, choice="random", max_updates=10)
    first, other = (case.solve(device, replace(rule, seed=seed))[0].step for seed in (1, 2))
    assert np.any(first != other)


@choices
@pairs_or_not
def test_number_of_threads_does_not_change_steps(make_device, choice, pairs):
    case = Case("hinge", n=200, n_blocks=5, n_outputs=2)
    rule = replace(EXACT, outputs=[0, 1], choice=choice, pairs=pairs, fraction=0.01)
    alone, together = (case.solve(make_device(n_jobs), rule) for n_jobs in (1, 2))
    for one, two in zip(alone, together):
        np.testing.assert_array_equal(one.rows, two.rows)
        np.testing.assert_array_equal(one.step, two.step)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_order_of_the_blocks_does_not_change_steps(make_device, n_jobs):
    case = Case("hinge", n=200, n_blocks=5, n_outputs=2)
    rule = replace(EXACT, outputs=[0, 1], of_block=[(0,), (1,), (0, 1), (1,), (0,)])
    given, other = (case.solve(make_device(n_jobs), replace(rule, order=order)) for order in (None, [3, 0, 4, 2, 1]))
    for one, two in zip(given, other, strict=True):
        np.testing.assert_array_equal(one.rows, two.rows)
        np.testing.assert_array_equal(one.step, two.step)


def test_rule_of_some_blocks():
    rule = replace(EXACT, of_block=[(0,), (1,), (2,), (3,)], order=[2, 0, 3, 1])
    some = rule.take([1, 2])
    assert (some.of_block, some.order) == ([(1,), (2,)], [1, 0])
    assert EXACT.take([1, 2]) == EXACT


def test_blocks_of_one_row(device):
    case = Case("squared_error", n=6, n_blocks=6)
    for step in case.solve(device, EXACT):
        least = subproblem_minimum(case.loss, *case.parts(0, step.rows), zero_sum=False)
        assert case.value(0, step) == pytest.approx(least, rel=1e-9)
    for step in case.solve(device, replace(EXACT, pairs=True)):  # nobody to pair with
        assert not step.step.any()


# ------------------------------------------------------------------------------------------------------ memory


def test_a_block_whose_matrix_is_given_needs_no_kernel_values(make_device):
    device, case = make_device(), Case(n_blocks=1)
    rows = case.blocks[0]
    point, samples = (case.coef, case.decision), device.samples(case.X, KERNEL)
    matrix = case.K[np.ix_(rows, rows)].copy()
    if device.largest_given(samples.dtype) < len(rows):
        pytest.skip(f"device {device.name!r} takes no matrices")
    (given,) = device.solve_blocks(KERNEL, samples, case.problem, point, [rows], EXACT, matrix=matrix)
    assert device.kernel_evaluations == 0
    (own,) = case.solve(device, EXACT, blocks=[rows])
    np.testing.assert_allclose(given.step, own.step, atol=1e-8)


@choices
@pairs_or_not
def test_little_memory_gives_the_same_solution(make_device, choice, pairs):
    case = Case("squared_hinge", n=300, n_blocks=1, zero_sum=pairs, C=0.02)
    rule = replace(EXACT, choice=choice, pairs=pairs, floor=1e-5)
    plenty, little = make_device(), make_device(memory_limit=1)
    expected, found = (case.solve(device, rule)[0] for device in (plenty, little))
    assert plenty.kernel_evaluations <= 300 * 300  # each value once at most
    assert case.value(0, found) == pytest.approx(case.value(0, expected), rel=1e-7)
    np.testing.assert_allclose(found.step, expected.step, atol=1e-5)


def test_little_memory_computes_forgotten_values_again(make_device):
    case, device = Case("squared_hinge", n=300, n_blocks=1, C=0.1), make_device(memory_limit=1)
    case.solve(device, replace(EXACT, floor=1e-4))
    assert device.kernel_evaluations > 300 * 300


def test_kept_blocks_compute_no_value_twice(make_device):
    case, device = Case("logistic", n=90, n_outputs=2), make_device()
    samples, rule = device.samples(case.X, KERNEL), replace(EXACT, outputs=[0, 1])
    first = case.solve(device, rule, keep=True, samples=samples)
    assert device.kernel_evaluations == sum(len(block) ** 2 for block in case.blocks)
    for _ in range(3):
        again = case.solve(device, rule, keep=True, samples=samples)
    assert device.kernel_evaluations == sum(len(block) ** 2 for block in case.blocks)
    for one, two in zip(first, again):
        np.testing.assert_array_equal(one.step, two.step)


def test_kept_blocks_follow_the_point(make_device):
    # Kernel values are kept, not results: at another point the steps are those of a device that kept nothing.
    case, keeping, fresh = Case("hinge", n=90), make_device(), make_device()
    samples = keeping.samples(case.X, KERNEL)
    case.solve(keeping, EXACT, keep=True, samples=samples)
    case.coef[:] = 0.0
    case.decision[:] = 0.0
    kept, new = case.solve(keeping, EXACT, keep=True, samples=samples), case.solve(fresh, EXACT)
    for one, two in zip(kept, new):
        np.testing.assert_array_equal(one.step, two.step)


def test_blocks_that_are_not_kept_do_not_disturb_those_that_are(make_device):
    case, keeping, fresh = Case("hinge", n=90), make_device(), make_device()
    samples = keeping.samples(case.X, KERNEL)
    first = case.solve(keeping, EXACT, keep=True, samples=samples)
    bridge = [np.arange(0, 90, 2)]
    (one,), (two,) = case.solve(keeping, EXACT, samples=samples, blocks=bridge), case.solve(fresh, EXACT, blocks=bridge)
    np.testing.assert_array_equal(one.step, two.step)
    for one, two in zip(first, case.solve(keeping, EXACT, keep=True, samples=samples)):
        np.testing.assert_array_equal(one.step, two.step)


def test_kept_values_are_forgotten_with_the_session(make_device):
    case, device = Case(n=60), make_device()
    device = type(device)(1, 1 << 30)
    for _ in range(2):
        with device.session():
            case.solve(device, EXACT, keep=True)
    assert device.kernel_evaluations == 2 * sum(len(block) ** 2 for block in case.blocks)
