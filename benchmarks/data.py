"""The benchmark data sets, by name.

`load(name)` looks for a set in three places, in this order:

1. the folder named by the environment variable ``PARABLOCK_DATA``;
2. ``../shared/data``, beside the repository;
3. ``data-cache`` inside the repository, where a set that is found nowhere is
   fetched to from its public source, where scikit-learn has a fetcher for it.

A set is one ``<name>.npz`` file with the arrays ``X_train``, ``y_train``,
``X_test`` and ``y_test``; sparse features are stored as ``train_data``,
``train_indices``, ``train_indptr`` and ``train_shape`` (likewise ``test_``)
instead. The forest cover types are stored as the one raw table
``covtype_raw.npz`` (``X`` and ``y7``) and split here.
"""

import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

REPOSITORY = Path(__file__).resolve().parents[1]
CACHE = REPOSITORY / "data-cache"

N_COVTYPE_TRAIN = 464_810

# Where each set comes from, for the message that tells how to get it.
ORIGINS = {
    "covtype": "UCI Covertype, class 2 against the others",
    "covtype7": "UCI Covertype, its seven classes",
    "mnist": "MNIST handwritten digits, OpenML mnist_784",
    "letter": "UCI Letter Recognition, OpenML letter",
    "pendigits": "UCI Pen-Based Recognition of Handwritten Digits, OpenML pendigits",
    "ijcnn1": "LIBSVM data collection",
    "a9a": "LIBSVM data collection",
    "w8a": "LIBSVM data collection, its training file split 80/20",
    "cod-rna": "LIBSVM data collection, its training file scaled and split 80/20",
    "phishing": "UCI Phishing Websites, as one-hot features in the LIBSVM data collection",
    "svmguide1": "LIBSVM data collection",
    "news20_bigram_tfidf": "20 newsgroups by date, tf-idf of words and word pairs",
    "cadata": "California housing, as in pmlb and the LIBSVM data collection",
    "cpusmall": "Delve cpusmall, as in pmlb and the LIBSVM data collection",
    "abalone": "UCI Abalone, scaled as in the LIBSVM data collection",
    "kin40k": "kin40k, the robot arm regression problem",
}

Arrays = dict[str, NDArray[Any]]


class Dataset(NamedTuple):
    """A data set, split into training and test rows; features are a CSR matrix where they are sparse."""

    X_train: Any
    y_train: NDArray[Any]
    X_test: Any
    y_test: NDArray[Any]


def load(name: str) -> Dataset:
    """Load a data set.

    Parameters
    ----------
    name : str
        One of the keys of `ORIGINS`.

    Returns
    -------
    Dataset
        The named tuple ``X_train, y_train, X_test, y_test``.

    Raises
    ------
    ValueError
        For an unknown name.
    FileNotFoundError
        Where the set is in none of the folders and cannot be fetched.
    """
    if name not in ORIGINS:
        raise ValueError(f"unknown data set {name!r}; known are {', '.join(sorted(ORIGINS))}")
    if name in ("covtype", "covtype7"):
        return _split_covtype(binary=name == "covtype")
    with np.load(_path_of(name)) as arrays:
        return Dataset(_features(arrays, "train"), arrays["y_train"], _features(arrays, "test"), arrays["y_test"])


def covtype_table() -> tuple[NDArray[np.int16], NDArray[np.int8]]:
    """Load the whole raw table of the forest cover types.

    Returns
    -------
    X : ndarray of int16, shape (581012, 54)
        The unscaled features, in the order of the source's rows.
    y : ndarray of int8, shape (581012,)
        The cover types 1 to 7.
    """
    with np.load(_path_of("covtype_raw")) as arrays:
        return arrays["X"], arrays["y7"]


def covtype_order(n_rows: int = 581_012) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Row numbers of the training and of the test rows, both in random order (always the same one)."""
    order = np.random.default_rng(0).permutation(n_rows)
    return order[:N_COVTYPE_TRAIN], order[N_COVTYPE_TRAIN:]


def folders() -> list[Path]:
    """Folders that are searched for data, the first one first."""
    named = os.environ.get("PARABLOCK_DATA")
    return ([Path(named)] if named else []) + [REPOSITORY.parent / "shared" / "data", CACHE]


def _split_covtype(binary: bool) -> Dataset:
    table, classes = covtype_table()
    X = table.astype(np.float32)
    low, high = X.min(axis=0), X.max(axis=0)
    X -= low
    X /= high - low
    y = np.where(classes == 2, 1, -1).astype(np.int8) if binary else classes
    train, test = covtype_order(len(X))
    return Dataset(X[train], y[train], X[test], y[test])


def _features(arrays: Mapping[str, NDArray[Any]], part: str) -> Any:
    if f"X_{part}" in arrays:
        return arrays[f"X_{part}"]
    data, indices, indptr = (arrays[f"{part}_{field}"] for field in ("data", "indices", "indptr"))
    return sp.csr_matrix((data, indices, indptr), shape=tuple(arrays[f"{part}_shape"]))


def _path_of(stem: str) -> Path:
    """Path of a data file, which is fetched first where it is in no folder."""
    for folder in folders():
        if (folder / f"{stem}.npz").is_file():
            return folder / f"{stem}.npz"
    if stem not in _FETCHERS:
        raise FileNotFoundError(
            f"{_not_found(stem)}, and it has no public source that can be read automatically "
            f"({ORIGINS[stem]}). Store it there in the form that benchmarks/data.py describes, "
            "or set PARABLOCK_DATA to the folder that holds it."
        )
    return _fetch(stem)


def _not_found(stem: str) -> str:
    return f"{stem}.npz is in none of the folders {', '.join(map(str, folders()))}"


def _fetch(stem: str) -> Path:
    """Fetch a data set from its public source, make sure that it is the expected one, and keep it."""
    fetch, expected = _FETCHERS[stem]
    try:
        arrays = fetch()
    # No network, no pandas, a source that is gone or changed: all mean the same to the caller.
    except (OSError, ImportError, ValueError) as error:
        raise FileNotFoundError(
            f"{_not_found(stem)}, and fetching it from its public source failed: {error}. "
            "Set PARABLOCK_DATA to the folder that holds it, or try again with a network connection."
        ) from error
    found = _fingerprint(arrays)
    if found != expected:
        raise FileNotFoundError(
            f"{_not_found(stem)}, and its public source now holds other data (fingerprint {found}, expected "
            f"{expected}): results would not be comparable. Set PARABLOCK_DATA to the folder that holds it."
        )
    CACHE.mkdir(exist_ok=True)
    path = CACHE / f"{stem}.npz"
    # Written beside and renamed, so that an interrupted run leaves no half file behind.
    with tempfile.TemporaryDirectory(dir=CACHE) as folder:
        draft = Path(folder) / path.name
        # The stubs take a second positional argument of savez_compressed to be a keyword of its own.
        np.savez_compressed(draft, **arrays)  # type: ignore[arg-type]
        draft.replace(path)
    return path


def _fingerprint(arrays: Arrays) -> str:
    """Digest of arrays' values in thousandths, so that it does not depend on their types."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        thousandths = np.rint(arrays[name].astype(np.float64) * 1000).astype("<i4")
        digest.update(f"{name}{thousandths.shape}".encode())
        digest.update(thousandths.tobytes())
    return digest.hexdigest()[:16]


def _fetch_covtype() -> Arrays:
    from sklearn.datasets import fetch_covtype

    X, y = fetch_covtype(data_home=str(CACHE), return_X_y=True)
    return {"X": X.astype(np.int16), "y7": y.astype(np.int8)}


def _fetch_openml(name: str, n_train: int) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], NDArray[Any]]:
    """Fetch a table whose first rows are the training rows and the others the test rows."""
    from sklearn.datasets import fetch_openml

    X, y = fetch_openml(name, version=1, as_frame=False, return_X_y=True, data_home=str(CACHE))
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def _fetch_mnist() -> Arrays:
    X_train, y_train, X_test, y_test = _fetch_openml("mnist_784", 60_000)
    return {
        "X_train": X_train.astype(np.uint8),
        "y_train": y_train.astype(np.int8),
        "X_test": X_test.astype(np.uint8),
        "y_test": y_test.astype(np.int8),
    }


def _fetch_letter() -> Arrays:
    X_train, y_train, X_test, y_test = _fetch_openml("letter", 15_000)

    def scaled(X: NDArray[Any]) -> NDArray[np.float32]:
        """From 0..15 to -1..1, as in the LIBSVM data collection."""
        return (X / 7.5 - 1).astype(np.float32)

    def number(letters: NDArray[Any]) -> NDArray[np.int8]:
        return np.array([ord(letter) - ord("A") + 1 for letter in letters], dtype=np.int8)

    return {
        "X_train": scaled(X_train),
        "y_train": number(y_train),
        "X_test": scaled(X_test),
        "y_test": number(y_test),
    }


def _fetch_pendigits() -> Arrays:
    X_train, y_train, X_test, y_test = _fetch_openml("pendigits", 7_494)
    return {
        "X_train": X_train.astype(np.float32),
        "y_train": y_train.astype(np.int8),
        "X_test": X_test.astype(np.float32),
        "y_test": y_test.astype(np.int8),
    }


# What fetches a file's arrays, and their fingerprint.
_FETCHERS: dict[str, tuple[Callable[[], Arrays], str]] = {
    "covtype_raw": (_fetch_covtype, "683b17ce76890149"),
    "mnist": (_fetch_mnist, "5758e6fada46a44b"),
    "letter": (_fetch_letter, "729b5caccc4d67c7"),
    "pendigits": (_fetch_pendigits, "e7479723262e9fc4"),
}
