"""Fits every problem on the ranks that run this, in the given way, and prints what came out (first rank)."""

import json
import sys

import numpy as np
from mpi4py import MPI

from parablock.engines import MPIEngine
from tests.engines.problems import PROBLEMS, outcome


def main(data, exchange):
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    found = {}
    for name, (make, load) in PROBLEMS.items():
        X, y = load()
        ends = np.arange(size + 1) * len(y) // size
        own = slice(None) if data == "replicated" else slice(ends[rank], ends[rank + 1])
        model = make(engine=MPIEngine(data=data, exchange=exchange)).fit(X[own], y[own])
        found[name] = outcome(model, X)
        found[name]["certified"] = model.certify(X, y).dual_objective  # with all rows, however they were divided
        everyones = comm.allgather((model.dual_objective_, model.dual_coef_.tobytes(), model.support_.tobytes()))
        assert len(set(everyones)) == 1, "the ranks have different models"
        if size > 1:
            assert sum(record.bytes_sent for record in model.history_) > 0
    if rank == 0:
        print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
