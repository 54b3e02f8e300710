"""A client starts a long fit and is killed; another one finds the workers ready for work."""

import multiprocessing
import os
import signal
import time

import numpy as np
from distributed import Client, LocalCluster

from parablock import KernelRidge
from parablock.engines import DaskEngine


def fit_for_ever(address):
    client = Client(address)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3))
    KernelRidge(C=1e9, tol=1e-15, max_iter=10**6, n_blocks=40, engine=DaskEngine(client)).fit(X, X[:, 0])


def busy(client):
    return sum(len(keys) for keys in client.processing().values())


def main():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        doomed = multiprocessing.get_context("spawn").Process(target=fit_for_ever, args=(cluster.scheduler_address,))
        doomed.start()
        limit = time.monotonic() + 60
        while busy(client) < 2 and time.monotonic() < limit:
            time.sleep(0.2)
        time.sleep(2)
        os.kill(doomed.pid, signal.SIGKILL)
        doomed.join()
        # One thread a worker: an answer comes only after the ranks have ended.
        answers = [client.submit(os.getpid, workers=[worker], pure=False) for worker in client.nthreads()]
        assert len(set(client.gather(answers))) == 2
        print("the workers are free again")


if __name__ == "__main__":
    main()
