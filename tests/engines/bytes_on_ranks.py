"""Fits some rows of covtype on the ranks that run this, and prints what was sent and computed (first rank)."""

import json
import sys

import numpy as np
from mpi4py import MPI

from parablock import KernelSVC
from parablock.datasets import load_covtype_sample
from parablock.engines import MPIEngine


def main(data, rows):
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    X, y, _, _ = load_covtype_sample()
    ends = np.arange(size + 1) * rows // size
    own = slice(0, rows) if data == "replicated" else slice(ends[rank], ends[rank + 1])
    model = KernelSVC(C=32, gamma=32, random_state=0, n_jobs=1, memory_limit="1GB", engine=MPIEngine(data=data))
    model.fit(X[own], y[own])
    if rank == 0:
        sent = [record.bytes_sent for record in model.history_ if record.kind != "check"]
        counted = {"support": len(model.support_), "kernel_values": model.kernel_evaluations_}
        print(json.dumps({"bytes_per_iteration": float(np.mean(sent[1:])), "bytes_sent": sum(sent), **counted}))


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
