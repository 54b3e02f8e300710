"""Trains models on MPI ranks, each with rows of its own; the first rank saves them and what they predict."""

import sys

import numpy as np
from mpi4py import MPI

from parablock import KernelSVC
from parablock.engines import MPIEngine
from tests.models.zoo import LOCAL, NEW, SETTINGS, decision, fit, in_format
from tests.small_problems import features, targets


def main(folder):
    rank, size = MPI.COMM_WORLD.Get_rank(), MPI.COMM_WORLD.Get_size()
    own = slice(72 * rank // size, 72 * (rank + 1) // size)
    for partition in ("tree", "kernel_kmeans"):
        for data_format in ("dense", "csr"):
            engine = MPIEngine(data="sharded")
            model = KernelSVC(partition=partition, engine=engine, **LOCAL, **SETTINGS)
            fit(model, in_format(features()[own], data_format), targets("labels")[own])
            values = decision(model, in_format(NEW, data_format))
            if rank == 0:
                np.save(f"{folder}/{partition}.{data_format}.npy", values)
                model.save(f"{folder}/{partition}.{data_format}.pbk")


if __name__ == "__main__":
    main(*sys.argv[1:])
