"""Fits a small problem, on MPI ranks where mpiexec started this, with a checkpoint after every iteration.

Prints the number of iterations and the objective. A third argument "slow" makes every iteration slow, "loud" lets
warnings be seen, and "sharded" divides the rows among the ranks.
"""

import os
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import make_moons

from parablock import Checkpoint, KernelSVC

SETTINGS = {"C": 10.0, "gamma": 5.0, "tol": 1e-4, "n_blocks": 6, "random_state": 0, "n_jobs": 1}


def main(path, iterations, manner=""):
    under_mpi = any(name in os.environ for name in ("PMI_RANK", "OMPI_COMM_WORLD_RANK"))
    if manner == "slow":
        from parablock.devices import CpuDevice

        original = CpuDevice.solve_blocks

        def slowly(self, *arguments):
            time.sleep(0.5)
            return original(self, *arguments)

        CpuDevice.solve_blocks = slowly
    warnings.simplefilter("always" if manner == "loud" else "ignore")
    X, y = make_moons(1500, noise=0.2, random_state=0)
    settings = {**SETTINGS, "engine": "mpi" if under_mpi else "local"}
    if manner == "sharded":
        from mpi4py import MPI

        from parablock.engines import MPIEngine

        own = np.array_split(np.arange(len(y)), MPI.COMM_WORLD.Get_size())[MPI.COMM_WORLD.Get_rank()]
        X, y = X[own], y[own]
        settings |= {"gamma": "scale", "engine": MPIEngine(data="sharded")}
    model = KernelSVC(**settings, max_iter=int(iterations), checkpoint=Checkpoint(path, seconds=0), resume="auto").fit(
        X, y
    )
    if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")) == "0":
        print(model.n_iter_, model.dual_objective_)


if __name__ == "__main__":
    main(*sys.argv[1:])
