"""Every rank maps its own part of files, too large for the given memory; the first compares with a fit in memory."""

import json
import sys
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from mpi4py import MPI

from parablock import KernelSVC
from parablock.datasets import open_csr, save_csr
from parablock.devices.cpu.stored import StoredSamples
from parablock.engines import MPIEngine, sharing

ROWS = 3000


def main(folder, stored):
    comm = MPI.COMM_WORLD
    rank, size = comm.Get_rank(), comm.Get_size()
    rng = np.random.default_rng(0)
    X = rng.normal(size=(ROWS, 40)).astype(np.float32)
    y = np.sign(X[:, 0] + 0.5 * np.sin(3 * X[:, 1]))
    if stored == "csr":
        X[np.abs(X) < 1.0] = 0.0
    path = Path(folder) / "data"
    if rank == 0 and stored == "npy":
        np.save(path, X)
    elif rank == 0:
        save_csr(path, sp.csr_matrix(X))
    comm.Barrier()
    first, last = ROWS * rank // size, ROWS * (rank + 1) // size
    if stored == "npy":
        own = np.load(f"{path}.npy", mmap_mode="r")[first:last]
    else:
        own = open_csr(path, first, last)
    kinds = []
    original = sharing.ShardedRows.__init__

    def noting(self, device, kernel, samples, *others):
        kinds.append(isinstance(samples, StoredSamples))
        original(self, device, kernel, samples, *others)

    sharing.ShardedRows.__init__ = noting
    settings = {"C": 2.0, "gamma": 0.05, "n_blocks": 6, "tol": 1e-4, "random_state": 0, "n_jobs": 1}
    engine = MPIEngine(data="sharded")
    model = KernelSVC(**settings, engine=engine, memory_limit="200kB").fit(own, y[first:last])
    on_disk = comm.allgather(kinds[0])
    if rank == 0:
        whole = sp.csr_matrix(X) if stored == "csr" else X
        here = KernelSVC(**settings).fit(whole, y)
        told = {"on disk": on_disk, "objective": model.dual_objective_, "in memory": here.dual_objective_}
        told["agreement"] = float(np.mean(model.predict(whole) == here.predict(whole)))
        print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])
