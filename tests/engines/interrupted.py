"""Ctrl-C reaches one rank in the middle of its own work; every rank must end its fit, with the same model."""

import os
import signal
import sys
import warnings

from mpi4py import MPI
from sklearn.datasets import make_moons

from parablock import KernelSVC
from parablock.engines import MPIEngine
from parablock.solver import iteration


def main(rank):
    comm = MPI.COMM_WORLD
    original, calls = iteration._choose, []

    def pressing_ctrl_c(*arguments):
        calls.append(None)
        if comm.Get_rank() == int(rank) and len(calls) == 3:
            os.kill(os.getpid(), signal.SIGINT)
        return original(*arguments)

    iteration._choose = pressing_ctrl_c
    signal.signal(signal.SIGINT, signal.default_int_handler)  # what shells start in the background ignores it
    warnings.simplefilter("ignore")
    X, y = make_moons(1500, noise=0.2, random_state=0)
    model = KernelSVC(C=10.0, gamma=5.0, tol=1e-6, n_blocks=6, random_state=0, n_jobs=1, engine=MPIEngine())
    model.fit(X, y)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    told = comm.allgather((model.stop_reason_, model.n_iter_, model.dual_objective_))
    assert len(set(told)) == 1, told
    if comm.Get_rank() == 0:
        print(*told[0])


if __name__ == "__main__":
    main(sys.argv[1])
