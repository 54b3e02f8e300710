"""Run by `test_larger_than_memory.py` in a process of its own: fits and predicts, and tells how much memory it took.

What is counted is the process's own memory (RssAnon): pages of mapped files are the system's, which drops them at need.
"""

import json
import sys
import threading
import time
import warnings

import numpy as np

from parablock import KernelSVC
from parablock.datasets import open_csr

SETTINGS = {"gamma": "scale", "n_blocks": 64, "max_iter": 2, "n_jobs": 1, "random_state": 0}


def own_megabytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("RssAnon")) / 1024


class Watch(threading.Thread):
    """Notes the most memory that was in use at once."""

    def __init__(self):
        super().__init__(daemon=True)
        self.most, self.done = own_megabytes(), False

    def run(self):
        while not self.done:
            self.most = max(self.most, own_megabytes())
            time.sleep(0.002)


def opened(folder, data_format):
    return np.load(f"{folder}/X.npy", mmap_mode="r") if data_format == "dense" else open_csr(f"{folder}/csr")


def main(folder, data_format, memory_limit):
    X = opened(folder, data_format)
    y = np.load(f"{folder}/y.npy")[: X.shape[0]]
    model = KernelSVC(**SETTINGS, memory_limit=memory_limit)
    warnings.simplefilter("ignore")
    few = slice(None, None, len(y) // 300)
    model.fit(X[few], y[few]).predict(X[few])  # compiles what it needs, and loads libraries
    watch = Watch()
    before = watch.most
    watch.start()
    model.fit(X, y)
    fitted = watch.most
    score = model.score(X, y)
    watch.done = True
    print(json.dumps({"fit": fitted - before, "predict": watch.most - before, "score": score}))


if __name__ == "__main__":
    main(*sys.argv[1:])
