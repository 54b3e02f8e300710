"""Fits float32 data of which one rank's rows alone need float64, on the ranks that run this."""

import json
import sys
import warnings

import numpy as np
from mpi4py import MPI

from parablock import KernelSVC
from parablock.engines import MPIEngine


def main(data):
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    X[150:, 0] = rng.uniform(0, 1e4, 50)
    X, y = X.astype(np.float32), (X[:, 1] > 0) * 1
    ends = np.arange(size + 1) * len(y) // size
    own = slice(None) if data == "replicated" else slice(ends[rank], ends[rank + 1])
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("always")
        model = KernelSVC(C=10, gamma=1.0, random_state=0, engine=MPIEngine(data=data)).fit(X[own], y[own])
    times = comm.allgather(sum("computed in float64" in str(warning.message) for warning in given))
    exact = KernelSVC(C=10, gamma=1.0, random_state=0).fit(X.astype(np.float64), y)
    if rank == 0:
        found = {"times": times, "dtype": str(model.support_vectors_.dtype), "objective": model.dual_objective_}
        print(json.dumps({**found, "exact": exact.dual_objective_}))


if __name__ == "__main__":
    main(*sys.argv[1:])
