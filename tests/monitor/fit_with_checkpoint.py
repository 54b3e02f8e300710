"""Fits a small problem, on MPI ranks where mpiexec started this, with a checkpoint after every iteration.

Prints the number of iterations and the objective. A third argument "slow" makes every iteration slow, "loud" lets
warnings be seen.
"""

import os
import sys
import time
import warnings

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
    model = KernelSVC(
        **SETTINGS,
        max_iter=int(iterations),
        engine="mpi" if under_mpi else "local",
        checkpoint=Checkpoint(path, seconds=0),
        resume="auto",
    ).fit(*make_moons(1500, noise=0.2, random_state=0))
    if os.environ.get("PMI_RANK", os.environ.get("OMPI_COMM_WORLD_RANK", "0")) == "0":
        print(model.n_iter_, model.dual_objective_)


if __name__ == "__main__":
    main(*sys.argv[1:])
