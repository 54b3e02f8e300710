"""One fit from top to bottom: data and problem in, solution out.

samples      the data made ready for the device
partition    the first blocks                                   (paper, section 4.3)
order        from here on rows are numbered block after block
schedule     what every iteration's blocks hold
minimise     Algorithm 1                                        (section 4)
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from sklearn.utils import check_array

from parablock import vectors
from parablock.compact import without_unused
from parablock.csr import given
from parablock.devices import CpuDevice, Device
from parablock.engines import Crew, Shard, make_engine
from parablock.engines.local import LocalCrew
from parablock.fingerprint import fingerprint_of
from parablock.kernels import Called, Kernel
from parablock.large_numbers import fits_float
from parablock.losses import Loss
from parablock.mapped import is_mapped, is_sparse
from parablock.monitor import Progress, Record, Stopwatch
from parablock.partition import KMeansPartitioner, Partition, Partitioner, TreePartitioner, make_partitioner
from parablock.precision import crew_with_digits, rows_in
from parablock.problem import Problem
from parablock.resuming import checkpoint_of, checkpointing, refuse_unwritable_checkpoint, snapshot_to_resume
from parablock.settings import Settings
from parablock.solver import (
    MANY_MACHINES,
    FixedSchedule,
    Part,
    RegroupedSchedule,
    Schedule,
    Solution,
    State,
    Watcher,
    minimise,
)
from parablock.solver.checking import doubt_about
from parablock.solver.direct import System, solved_directly
from parablock.solver.pbm import CONVERGED, STALLED
from parablock.solver.units import Units

# A bridge of two blocks' size saves iterations; but one machine solves it, and many others would wait.
_LARGE_BRIDGE = 2

# Where the blocks hold less than this share of the kernel's mass they would get into each other's way at once:
# start from a sample of the rows that fills a few blocks.
_WIDE_KERNEL, _WIDE_KERNEL_BLOCKS = 0.25, 8
# From here on a value for every column of sparse rows would be much memory; who looks at columns, and does not call a
# function of the user with them, is given them numbered anew.
_MANY_COLUMNS, _BY_FEATURES = 1 << 22, (TreePartitioner, KMeansPartitioner)
# Of problems this small the objective is computed a second time.
_CHECKED_ROWS = 1000


@dataclass(frozen=True)
class Trained:
    """What a fit leaves behind.

    Attributes
    ----------
    solution : Solution
    partition : Partition
        The first blocks.
    centre : ndarray or None
        What was subtracted from the data.
    dtype : dtype
        Of the rows: that of the data, or float64 where kernel values in float32 would have been wrong.
    """

    solution: Solution
    partition: Partition
    centre: np.ndarray | None
    dtype: np.dtype


class Watch(Watcher, Protocol):
    """Who follows a fit, from when its first blocks are made."""

    def ready(
        self, partition: Partition, centre: np.ndarray | None, dtype: np.dtype, order: np.ndarray, machines: int
    ) -> None:
        """From here on row order[i] is called i."""

    def best(self) -> Solution | None:
        """The solution to keep instead of the last one, with the coefficients of all rows as the data numbers them, and
        the intercepts to keep in its measures; the same on every machine."""


def train(
    X: Any,
    kernel: Kernel,
    problem: Problem,
    settings: Settings,
    rng: np.random.Generator,
    start: np.ndarray | None = None,
    watch: Watch | None = None,
) -> Trained:
    """Minimise the problem over the kernel matrix of the rows of X.

    Parameters
    ----------
    X : array or CSR matrix of float32 or float64, shape (n, n_features)
    kernel : Kernel
    problem : Problem
    settings : Settings
    rng : numpy Generator
    start : ndarray of shape (n_outputs, n), optional
        Coefficients to start from; they are moved into the box.
    watch : Watch, optional
        On every machine, or on none.
    """
    refuse_unwritable_checkpoint(settings)
    if settings.solves_directly(X, problem):
        with prepared_directly(X, kernel, settings, rng) as ground:
            trained = ground.solve_directly(problem, watch)
        if trained is not None:
            return trained
    with prepared(X, kernel, settings, rng) as ground:
        return ground.train(problem, rng, start, watch=watch)


@dataclass(frozen=True)
class Ground:
    """Rows, kernel and first blocks, ready in the device's session: what several problems can be solved over, one after
    the other, with the kernel values that the device keeps.

    Attributes
    ----------
    X : array, CSR matrix, MappedRows or Shard
        The rows, in the precision that the kernel needs.
    kernel, settings
        As `prepared` was given them.
    device : Device
    crew : Crew
        Of the rows, numbered block after block.
    partitioner : Partitioner
    partition : Partition
        The first blocks.
    order : ndarray
        Row i of the crew is row order[i] of X.
    centre : ndarray or None
        What was subtracted from the data.
    progress : Progress
    stopwatch : Stopwatch
        From whose start the seconds of a history count.
    """

    X: Any
    kernel: Kernel
    settings: Settings
    device: Device
    crew: Crew
    partitioner: Partitioner
    partition: Partition
    order: np.ndarray
    centre: np.ndarray | None
    progress: Progress
    stopwatch: Stopwatch

    def train(
        self,
        problem: Problem,
        rng: np.random.Generator,
        start: np.ndarray | None = None,
        rest: bool = True,
        watch: Watch | None = None,
    ) -> Trained:
        """Minimise a problem over the rows, as `train` does. With `rest=False` no rows rest, so that kernel columns are
        as long as there are rows and serve the next problem too."""
        order, crew, units = self.order, self.crew, self.crew.agree(Units.of(problem))
        settings = replace(self.settings, tol=self.settings.tol * units.spread)
        options, inside = settings.options(problem.loss, self.X), units.inside(problem)
        if watch is not None:
            watch.ready(self.partition, self.centre, self.X.dtype, order, crew.size)
        ordered = crew.near(inside.take(order))
        coef = vectors.zeros_like(ordered.target)
        if start is not None:
            coef = vectors.place(coef, inside.feasible(units.divided(start))[:, order])
        used = vectors.flatnonzero(coef.any(axis=0))
        decision = crew.product(used, vectors.columns(coef, used)) if len(used) else vectors.zeros_like(coef)
        with checkpointing(self.settings, crew, self.kernel, problem, self.X, order) as (keeper, snapshot):
            solution = minimise(
                Part(None, ordered, crew, self.partitioner.restricted(order)),
                _schedule(problem, settings, self.partition, rng, crew.size, self.device.largest_block),
                replace(options, rest=options.rest and rest),
                State.at(ordered, coef, decision),
                rng,
                self.stopwatch,
                units,
                self.progress.iteration if crew.is_first else lambda record: None,
                keeper,
                snapshot,
                watch,
            )
        best = None if watch is None else watch.best()
        if best is None:
            return self._checked(problem, solution.put_back(order))
        solution = self._instead(solution, best, ordered, units)
        return Trained(solution, self.partition, self.centre, self.X.dtype)

    def _instead(self, last: Solution, best: Solution, problem: Problem, units: Units) -> Solution:
        """A solution that was met on the way, with its own intercepts, in place of the last one. What was known of it
        was of the rows that were watched then; here all are looked at. Only the problem is inside the units."""
        order, crew = self.order, self.crew
        coef = vectors.place(problem.target, units.divided(best.state.coef[:, order]))
        used = vectors.flatnonzero(coef.any(axis=0))
        decision = vectors.zeros_like(coef)
        if not (coef != units.divided(last.state.coef)).any():
            decision = units.divided(last.state.decision)
        elif len(used):
            everyone = vectors.numbers(used, 0, problem.n)
            decision = crew.decision(everyone, used, vectors.columns(coef, used))
        biases = [measure.bias for measure in best.state.measures]
        inside = ((np.array(biases) - units.offset) / units.scale).tolist()
        measures = [problem.measure(i, coef[i], decision[i], bias) for i, bias in enumerate(inside)]
        state = units.outside(State(coef, decision, last.state.iteration, measures)).put_back(order)
        measures = [replace(measure, bias=bias) for measure, bias in zip(state.measures, biases, strict=True)]
        return replace(last, state=replace(state, measures=measures), local=best.local)

    def _small_matrix(self) -> np.ndarray | None:
        """The kernel matrix of all rows, where they are few and it costs little."""
        if not isinstance(self.crew, LocalCrew) or len(self.order) > _CHECKED_ROWS or self.kernel.overlap == "called":
            return None
        before, place = self.device.kernel_evaluations, np.argsort(self.order)
        values = self.device.gram(self.kernel, self.crew.samples, self.crew.samples)
        self.device.kernel_evaluations = before  # which tells what training needed
        return values[np.ix_(place, place)]

    def _checked(self, problem: Problem, solution: Solution) -> Trained:
        """The solution; if it was taken for the optimum, after a look at it by other means."""
        if solution.reason == CONVERGED:
            doubt = self.crew.agree(doubt_about(problem, solution.state, self._small_matrix()))
            if doubt is not None:
                solution = replace(solution, reason=STALLED, doubt=doubt)
        return Trained(solution, self.partition, self.centre, self.X.dtype)

    @cached_property
    def _system(self) -> System:
        assert isinstance(self.device, CpuDevice) and isinstance(self.crew, LocalCrew)
        return self.device.system(self.kernel, self.crew.samples)

    def solve_directly(self, problem: Problem, watch: Watch | None = None) -> Trained | None:
        """The optimum of squared error by Cholesky factorisation, as one iteration; None where the kernel is not
        positive definite. A checkpoint to resume from must fit the problem, but is not needed, and none is written."""
        checkpoint = checkpoint_of(self.settings)
        if checkpoint is not None:
            snapshot_to_resume(checkpoint, self.settings.resume, fingerprint_of(self.kernel, problem, self.X), problem)
        if watch is not None:
            watch.ready(self.partition, self.centre, self.X.dtype, self.order, self.crew.size)
            watch.begin()
        units = Units.of(problem)
        inside = solved_directly(self._system, units.inside(problem.take(self.order)))
        if inside is None:
            return None
        state = units.outside(inside)
        record = Record(
            iteration=1,
            kind="cholesky",
            seconds=self.stopwatch.seconds(),
            seconds_compiling=self.stopwatch.seconds_compiling(),
            objective=state.objective,
            duality_gap=state.duality_gap,
            violation=state.violation,
            step=1.0,
            blocks=1,
            active=problem.n,
            changed=int(state.coef.any(axis=0).sum()),
            updates=0,
            watched=problem.n,
            kernel_evaluations=self.device.kernel_evaluations,
        )
        self.progress.iteration(record)
        reason = CONVERGED if state.violation <= self.settings.tol else STALLED
        solution = Solution(state, [record], reason, record.kernel_evaluations, None)
        if watch is not None:
            watch.end(record, lambda: solution)
        return self._checked(problem, solution.put_back(self.order))


def prepared_directly(
    X: Any, kernel: Kernel, settings: Settings, rng: np.random.Generator
) -> AbstractContextManager[Ground]:
    """The rows of X in float64 and as one block: where `Ground.solve_directly` can be called."""
    return prepared(rows_in(X, np.dtype(np.float64)), kernel, replace(settings, n_blocks=1), rng)


@contextmanager
def prepared(X: Any, kernel: Kernel, settings: Settings, rng: np.random.Generator) -> Iterator[Ground]:
    """Make the rows of X ready to train on."""
    stopwatch = Stopwatch()
    engine = make_engine(settings.engine)
    progress = Progress(settings.verbose, engine.stream())
    partitioner = make_partitioner(settings.partition, X.shape[0])
    device = engine.checked(settings.make_device)
    own, centre = X.own if isinstance(X, Shard) else X, None
    if kernel.shift_invariant and not is_sparse(own):  # to subtract it from sparse rows would make them dense
        centre = engine.means(X)
        if engine.everywhere(engine.checked(lambda: device.wants_whole_numbers(own))):
            centre = np.rint(centre)
    with engine.listening(), device.session():
        rows, columns = _with_entries(X, kernel, partitioner)
        crew, rows, centre = crew_with_digits(engine, device, kernel, rows, centre)
        X = rows if columns is None else rows_in(X, rows.dtype)
        crew.refuse_nonsense(rng)
        partition = crew.partition(partitioner, settings.block_count(X, crew.size), rng)
        if columns is not None:
            partition = replace(partition, centres=partition.centres.of_columns(columns, X.shape[1]))
        if crew.is_first:
            progress.say(partition.report())
            progress.say("objective, gap and violation are of the kernel matrix in the precision of the data")
        # Block after block, so that neighbours are side by side in memory too, and read in long stretches.
        order = np.concatenate(partition.blocks)
        crew = crew.ordered(order)  # the rows as they were before are no longer needed
        yield Ground(X, kernel, settings, device, crew, partitioner, partition, order, centre, progress, stopwatch)


def _with_entries(X: Any, kernel: Kernel, partitioner: Partitioner) -> tuple[Any, np.ndarray | None]:
    """Sparse rows without the columns that have no entries, and the numbers of those that have, where there are so many
    columns that nothing should have a value for each."""
    numbered = sp.issparse(X) and not is_mapped(X) and X.shape[1] > max(X.nnz, _MANY_COLUMNS)
    if numbered and isinstance(partitioner, _BY_FEATURES) and not isinstance(kernel, Called):
        return without_unused(X)
    return X, None


def solve(
    X: Any,
    target: np.ndarray,
    loss: Loss,
    kernel: Kernel,
    *,
    C: float | np.ndarray = 1.0,
    fit_intercept: bool = True,
    random_state: int = 0,
    **settings: Any,
) -> Trained:
    """Train with any loss and kernel, without an estimator around it.

    Parameters
    ----------
    X : array or CSR matrix of float32 or float64, shape (n, n_features)
    target : array of shape (n,) or (n_outputs, n)
        What the loss calls target: labels -1 and +1, or numbers.
    loss : Loss
        One of `parablock.losses`, or the user's own.
    kernel : Kernel
        One of `parablock.kernels`.
    C : float or array of the target's shape, default=1.0
        Weight of the loss of every sample.
    fit_intercept : bool, default=True
    random_state : int, default=0
    **settings
        As in `Settings`: tol, max_iter, partition, n_blocks, ...

    Returns
    -------
    Trained
        ``trained.solution.state`` holds the coefficients, and in its ``measures`` intercept and duality gap.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock import solve
    >>> from parablock.kernels import RBF
    >>> from parablock.losses import Hinge
    >>> X = np.array([[0.0], [1.0], [2.0], [3.0]])
    >>> trained = solve(X, np.array([-1.0, -1.0, 1.0, 1.0]), Hinge(), RBF(1.0), C=10.0)
    >>> trained.solution.reason
    'converged'
    >>> trained.solution.state.coef.round(3)
    array([[-0.554, -1.276,  1.276,  0.554]])
    """
    order = None if is_mapped(X) else "C"
    X, target, C = given(X, "X"), given(target, "target"), given(C, "C")
    X = check_array(X, accept_sparse="csr", dtype=(np.float64, np.float32), order=order, input_name="X")
    target = np.atleast_2d(np.asarray(target, dtype=np.float64))
    weight = np.asarray(C if fits_float(C) else np.inf, dtype=np.float64)
    if target.ndim != 2 or target.shape[1] != X.shape[0]:
        raise ValueError(
            f"target must have one value, or one for each output, for each of X's {X.shape[0]} rows; got shape "
            f"{np.shape(target)}."
        )
    if not (np.isfinite(target).all() and np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError("target and C must be finite, and C must not be negative.")
    problem = Problem.build(loss, target, weight, fit_intercept)
    return train(X, kernel, problem, Settings(**settings), np.random.default_rng(random_state))


def _schedule(
    problem: Problem,
    settings: Settings,
    partition: Partition,
    rng: np.random.Generator,
    machines: int,
    largest_block: int | None,
) -> Schedule:
    ends = np.cumsum(partition.sizes)
    blocks = [np.arange(end - size, end) for end, size in zip(ends, partition.sizes, strict=True)]
    bridge_size = int(partition.sizes.max()) * (_LARGE_BRIDGE if machines < MANY_MACHINES else 1)
    if largest_block is not None:
        bridge_size = min(bridge_size, largest_block)
    if settings.regroup and len(partition.blocks) > 1:
        wide = partition.kernel_mass_inside < _WIDE_KERNEL
        return RegroupedSchedule(
            blocks,
            bridge_size,
            problem.intercept,
            settings.tol,
            rng,
            most_blocks=_WIDE_KERNEL_BLOCKS if wide else None,
            machines=machines,
        )
    return FixedSchedule(blocks, bridge_size, problem.intercept, settings.tol)
