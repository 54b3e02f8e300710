"""Fits with callbacks on the ranks that run this; prints what the first one saw, asserts what all must agree on.

Every rank sets the same callbacks, as a program that runs on all of them does, unless said otherwise.
"""

import json
import sys
import warnings
from pathlib import Path

import numpy as np
from mpi4py import MPI

from benchmarks.exact import values_of
from parablock.callbacks import EarlyStopping, JSONLog, TimeLimit, ValidationScore, read_log
from parablock.engines import MPIEngine
from tests.callbacks.small_fits import Recorder, machine, moons

COMM = MPI.COMM_WORLD
RANK, SIZE = COMM.Get_rank(), COMM.Get_size()


def same_everywhere(model):
    everyones = COMM.allgather(
        (model.dual_coef_.tobytes(), model.support_.tobytes(), model.stop_reason_, model.n_iter_)
    )
    assert len(set(everyones)) == 1, "the ranks have different models"


def watched(data, folder):
    X, y = moons()
    valid = moons(90, seed=1)
    ends = np.arange(SIZE + 1) * len(y) // SIZE
    own = slice(None) if data == "replicated" else slice(ends[RANK], ends[RANK + 1])

    def fit(*callbacks, **settings):
        model = machine(engine=MPIEngine(data=data), **settings)
        with warnings.catch_warnings(record=True) as given:
            warnings.simplefilter("always")
            model.set_callbacks(*callbacks).fit(X[own], y[own])
        same_everywhere(model)
        return model, [str(warning.message) for warning in given]

    found = {}
    recorder, validation = Recorder(), ValidationScore(*valid)
    log = Path(folder) / f"{data}.jsonl"
    model, _ = fit(recorder, validation, JSONLog(log))
    assert bool(recorder.heard) == (RANK == 0), "callbacks are heard on the first rank, and there only"
    if RANK == 0:
        read = read_log(log)
        found["log"] = {"runs": read.count, "iterations": len(read.history), "reason": read.end["reason"]}
        found["log"] |= {"rows": read.ready["data"]["rows"], "processes": read.ready["processes"]}
        found["models"] = [one.score(*valid) for one in recorder.models[:-1]]
        found["scores"] = validation.scores_
        found["history"] = len(model.history_)

    stopping = EarlyStopping(*valid, patience=2)
    model, given = fit(stopping)
    assert not given
    found["early"] = {"score": model.score(*valid), "iterations": model.n_iter_, "reason": model.stop_reason_}
    expected = values_of(model, X, y)  # of all rows, whatever this rank has
    found["published"] = [model.dual_objective_, model.duality_gap_, model.violation_]
    found["expected"] = [expected.dual, expected.primal - expected.dual, expected.violation]
    assert len(set(COMM.allgather(str(found["published"])))) == 1
    if RANK == 0:
        found["best"] = {"score": stopping.best_score_, "iteration": stopping.best_iteration_}

    model, given = fit(TimeLimit(1e-6))
    found["limit"] = {"reason": model.stop_reason_, "iterations": model.n_iter_, "warnings": given}

    model, _ = fit(*([Recorder(stop_after=2)] if RANK == 0 else []))  # of the first rank alone
    found["first alone"] = model.n_iter_
    model, _ = fit(*([Recorder(stop_after=2)] if RANK == 1 else []))  # nobody asks another rank
    found["second alone"] = model.stop_reason_

    for hook in ("setup", "on_fit_task_begin", "on_fit_task_end"):
        try:
            fit(Recorder(fail_at=hook))
        except OSError as error:
            found[hook] = str(error)
    assert len(set(COMM.allgather(json.dumps([found.get(hook) for hook in ("setup", "on_fit_task_end")])))) == 1
    return found


if __name__ == "__main__":
    everything = {data: watched(data, sys.argv[1]) for data in ("replicated", "sharded")}
    if RANK == 0:
        print(json.dumps(everything))
