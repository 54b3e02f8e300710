"""Deals numbers, or the rows of fits, out to the ranks that run this, and prints who got what (first rank); or shares
memory among them."""

import hashlib
import json
import sys
import time
from itertools import chain

import numpy as np
import pytest
from mpi4py import MPI

from parablock import KernelSVC
from parablock.devices import CpuDevice
from parablock.engines import MPIEngine, common, dealing
from parablock.engines.crew import RankCrew
from parablock.engines.mpi import MPITalk
from parablock.engines.shares import Shares
from parablock.partition.regions import Regions

COMM, MPI_WIN = MPI.COMM_WORLD, MPI.Win
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()


def numbers():
    rng = np.random.default_rng(RANK)
    talk = MPITalk(COMM)
    for count in range(50):
        assert once(talk, count, lambda: time.sleep(1e-4 * rng.random())) == "every number once", count

    def fails():
        next(talk.deal(20), None)
        if RANK == SIZE - 1:
            raise ValueError("no more")

    with pytest.raises(ValueError, match="no more"):
        talk.together(fails)
    after = once(talk, 30)
    part = COMM.Split(RANK % 2)
    found = {"rounds": 50, "after an error": after, "of a part of the ranks": once(MPITalk(part), 17)}
    if RANK == SIZE - 1:
        MPI.Win = NoMemory
    lonely = MPITalk(COMM.Dup())
    assert list(lonely.deal(13)) == list(range(RANK, 13, SIZE))
    return {**found, "where a rank has no memory to share": once(lonely, 13)}


class NoMemory:
    """What an MPI that cannot share memory has for windows."""

    @staticmethod
    def Allocate_shared(*arguments, comm):
        MPI_WIN.Allocate_shared(*arguments, comm=comm)  # the others wait for it
        raise MPI.Exception(MPI.ERR_NO_MEM)


def once(talk, count, work=lambda: None):
    """Whether every number was dealt once."""
    own = []
    for number in talk.deal(count):
        own.append(number)
        work()
    dealt = sorted(chain.from_iterable(talk.share(own)))
    return "every number once" if dealt == list(range(count)) else str(dealt)


def fits():
    X = np.random.default_rng(0).normal(size=(4000, 3)).astype(np.float32)
    y = np.sin(3 * X).sum(axis=1) > 0
    dealing._LEAST_SHARE, dealing._LEAST_PIECE = 50, 16
    options = {"C": 10, "gamma": 5, "n_blocks": 12, "random_state": 0, "n_jobs": 1, "tol": 1e-3}
    rows, models, solved, slow, alone = [], [], [], [None], []
    draw, settle, steps, prefetch = dealing.Draws.__iter__, Shares.settle, RankCrew._steps, CpuDevice.prefetch
    look_ahead, cut, looks, cuts = Regions.of, Regions.blocks, [], []

    def slowly(self):
        for piece in draw(self):
            yield piece
            time.sleep(0.05 if RANK in slow else 0.001)

    def noted(self, drawn):
        if self.pieces:
            settle(self, drawn)
            rows[-1].append([len(own) for own in self.rows])

    def noting_bridges(self, problem, point, blocks, *others):
        bridge = len(blocks) == 1
        before = self.device.kernel_evaluations
        found = steps(self, problem, point, blocks, *others)
        if bridge:
            solved[-1] += 1
            alone[-1] += self.device.kernel_evaluations - before
            noting_columns.due = True
        return found

    def noting_columns(self, *arguments):
        before = self.kernel_evaluations
        prefetch(self, *arguments)
        if noting_columns.due:  # by the one who has solved the bridge
            alone[-1] += self.kernel_evaluations - before
        noting_columns.due = False

    noting_columns.due = False

    def noting_looks(samples, rows, *others):
        looks.append(len(rows))
        return look_ahead(samples, rows, *others)

    def noting_cuts(self, *arguments):
        blocks = cut(self, *arguments)
        cuts.append(blocks is not None)
        return blocks

    def fit(**more):
        rows.append([])
        solved.append(0)
        alone.append(0)
        engine = MPIEngine(data="replicated")
        return KernelSVC(engine=engine, **options, **more).fit(X, y)

    dealing.Draws.__iter__, Shares.settle, RankCrew._steps = slowly, noted, noting_bridges
    CpuDevice.prefetch, Regions.of, Regions.blocks = noting_columns, noting_looks, noting_cuts
    for slow[0] in range(SIZE):
        model = fit()
        models.append(hashlib.sha256(model.dual_coef_.tobytes() + model.support_.tobytes()).hexdigest())
        assert min(record.watched for record in model.history_) < 4000, "nobody rests: nothing is dealt out"
    fit(memory_limit="4MB")
    MPITalk.beside = lambda self, rank: [rank] if rank == SIZE - 1 else list(range(SIZE - 1))
    machines = fit()
    MPITalk.common = lambda self, shape, dtype: None
    without = fit()
    local = KernelSVC(**options).fit(X, y)
    return {
        "rows by slow rank": [first for first, _ in rows[:SIZE]],
        "and with those that woke": [later for _, later in rows[:SIZE]],
        "bridges by slow rank": np.transpose(COMM.allgather(solved[:SIZE])).tolist(),
        "bridges": COMM.allreduce(sum(solved)),
        "looks ahead": COMM.allreduce(len(looks)),
        "blocks that were looked ahead to": sum(cuts),
        "models": models,
        "objective": model.dual_objective_,
        "of two machines": machines.dual_objective_,
        "without memory in common": without.dual_objective_,
        "of one process": local.dual_objective_,
        "times dealt without room": len(rows[SIZE]),
        "values that a solver computes alone": COMM.allreduce(sum(alone[:SIZE])),
        "and without memory in common": COMM.allreduce(alone[SIZE + 2]),
    }


def memory():
    talk = MPITalk(COMM)
    found = {}
    for size in (1000, 500, 100_000):  # it grows
        values = talk.common((size, SIZE), np.float32)
        values[:, RANK] = size + RANK + np.arange(size)
        COMM.Barrier()
        np.testing.assert_array_equal(values, size + np.arange(SIZE) + np.arange(size)[:, None])
        COMM.Barrier()
        found[size] = "seen by all"
    part = COMM.Split(RANK % 2)
    own = MPITalk(part).common((10,), np.int64)
    own[:] = RANK % 2  # each part has its own
    COMM.Barrier()
    assert own.tolist() == [RANK % 2] * 10
    found["beside"] = talk.beside(SIZE - 1)
    # Where one of the ranks cannot reach the memory, or finds a file that is not what was made, nobody uses it.
    reached = common._found
    others = {"one cannot": lambda *told: None, "of someone else": lambda p, f, token, size: reached(p, f, b"?", size)}
    for name, instead in others.items():
        if RANK == SIZE - 1:
            common._found = instead
        lonely = MPITalk(COMM.Dup())
        found[name] = [lonely.common((10,), np.float32) is None for _ in range(2)]
    return found


if __name__ == "__main__":
    found = {"numbers": numbers, "fits": fits, "memory": memory}[sys.argv[1]]()
    if RANK == 0:
        print(json.dumps(found))
