"""One rank brings bad data, or fails while it works; every rank must raise the same error."""

import sys

import numpy as np
from mpi4py import MPI

from parablock import KernelSVC
from parablock.devices import CpuDevice
from parablock.engines import MPIEngine

EXPECTED = {
    "nan": "NaN",
    "features": "same features",
    "empty": "0 sample",
    "one class": "2 classes",
    "format": "CSR",
    "different rows": "different rows",
    "in the middle": "out of luck",
}


def main(fault):
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    rng = np.random.default_rng(rank)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    bad, data = rank == size - 1, "sharded"
    if bad and fault == "nan":
        X[3, 2] = np.nan
    elif bad and fault == "features":
        X = X[:, :3]
    elif bad and fault == "empty":
        X, y = X[:0], y[:0]
    elif fault == "one class":
        y[:] = 1
    elif bad and fault == "format":
        import scipy.sparse as sp

        X = sp.csr_matrix(X)
    elif fault == "different rows":
        data = "replicated"
    elif bad and fault == "in the middle":
        original = CpuDevice.column_dot

        def fails(self, *arguments):
            if self.kernel_evaluations > 5000:
                raise ValueError("out of luck")
            return original(self, *arguments)

        CpuDevice.column_dot = fails
    try:
        KernelSVC(gamma=1.0, n_blocks=3, tol=1e-6, random_state=0, n_jobs=1, engine=MPIEngine(data=data)).fit(X, y)
        message = "no error"
    except ValueError as error:
        message = str(error)
    messages = comm.allgather(message)
    assert len(set(messages)) == 1, messages
    assert EXPECTED[fault] in message, message
    if rank == 0:
        print("every rank raised the same error:", message)


if __name__ == "__main__":
    main(sys.argv[1])
