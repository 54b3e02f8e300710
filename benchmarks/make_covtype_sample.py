"""Write the sample of the forest cover types that comes with the package.

Run as ``python -m benchmarks.make_covtype_sample`` from the repository. The sample
holds the first training and the first test rows of ``load("covtype")``, which are in
random order, so results on it compare with results on the whole set.
"""

from pathlib import Path

import numpy as np

from benchmarks.data import REPOSITORY, covtype_order, covtype_table

TARGET = REPOSITORY / "src" / "parablock" / "datasets" / "covtype_sample.npz"

# What fits into about 1 MB.
N_TRAIN = 50_000
N_TEST = 10_000


def write_sample(target: Path = TARGET) -> Path:
    """Write the sample.

    Parameters
    ----------
    target : Path
        The ``.npz`` file to write.

    Returns
    -------
    Path
        `target`.
    """
    X, y = covtype_table()
    train, test = covtype_order(len(X))
    rows = np.concatenate([train[:N_TRAIN], test[:N_TEST]])
    np.savez_compressed(
        target,
        # Feature by feature: equal values are neighbours, which compresses a fifth smaller.
        features=np.ascontiguousarray(X[rows].T),
        classes=y[rows],
        n_train=np.array(N_TRAIN),
        # Of the whole table, not of the sample: the scale is then that of the whole set.
        minimum=X.min(axis=0),
        maximum=X.max(axis=0),
    )
    return target


if __name__ == "__main__":
    path = write_sample()
    print(f"{path}: {path.stat().st_size:,} bytes")
