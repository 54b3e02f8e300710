"""Very sparse, very wide rows in the manner of the KDD Cup 2010 set "algebra" (kdda), as many as one likes.

The rows of kdda are steps of pupils in an algebra tutor: each says by ones which pupil, problem, step, skills and
combinations of them it belongs to, and the label whether the first answer was right. So are the rows here. There are 40
fields, whose sizes grow geometrically from 70 to 5 million and sum up to 20,216,830 features; a row has one feature in
each of most fields, 36 in all on average. What a field says depends on the pupil's class, the pupil, the section that
the problem is from, the problem, or on nothing (see `_LEVELS`); some pupils, problems and features are frequent, most
are rare. The classes' skill and the sections' difficulty decide most of the label, pupil, problem and chance the rest.

Rows come in parts of 10,000, each with its own random numbers: any part can be made without the others, by any machine.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import scipy.sparse as sp

FEATURES = 20_216_830
PART = 10_000
_LEVELS = ("class", "pupil", "section", "problem", "chance")  # what the fields depend on, in turn
N_FIELDS, PRESENT = 40, 0.9  # a row has a feature of a field with this probability: 36 on average
_CLASSES, _PUPILS, _SECTIONS, _PROBLEMS = 120, 3_310, 300, 188_368
_RARE = 3.0  # how fast popularity falls: number u^3 of all, u uniform
# What the answer is made of: that of the average problem, and how far each level moves it.
_EASE = 3.2
_WEIGHTS = {"class": 2.5, "pupil": 0.8, "section": 3.5, "problem": 0.8}
_NOISE = 0.4


def kdda_like(n: int, seed: int = 0, test: bool = False) -> tuple[sp.csr_matrix, np.ndarray]:
    """Make rows.

    Parameters
    ----------
    n : int
        Number of rows; fewer rows are the first ones of more rows.
    seed : int, default=0
        Equal seeds give equal rows.
    test : bool, default=False
        Other rows of the same pupils and problems.

    Returns
    -------
    X : CSR matrix of float32, shape (n, 20216830)
    y : ndarray of int8, shape (n,)
        -1 and +1.
    """
    if n < 0:
        raise ValueError(f"n={n} rows were asked for; n must not be negative.")
    if n == 0:
        return sp.csr_matrix((0, FEATURES), dtype=np.float32), np.empty(0, dtype=np.int8)
    with ThreadPoolExecutor() as pool:
        parts = list(pool.map(lambda number: kdda_part(number, seed, test), range(-(-n // PART))))
    last, labels = parts.pop()
    rest = n - len(parts) * PART
    parts.append((last[:rest], labels[:rest]))
    return sp.vstack([rows for rows, _ in parts], format="csr"), np.concatenate([labels for _, labels in parts])


def kdda_part(number: int, seed: int = 0, test: bool = False) -> tuple[sp.csr_matrix, np.ndarray]:
    """Make the rows from number x 10,000 on."""
    rng = np.random.default_rng([seed, int(test), number])
    pupil, problem = ((count * rng.random(PART) ** _RARE).astype(np.int64) for count in (_PUPILS, _PROBLEMS))
    known = {"pupil": pupil, "class": pupil % _CLASSES, "problem": problem, "section": problem % _SECTIONS}
    sizes = field_sizes()
    features = np.empty((PART, N_FIELDS), dtype=np.int64)
    for field, start in enumerate(np.cumsum(sizes) - sizes):
        level = _LEVELS[field % len(_LEVELS)]
        share = _uniform(known[level], field) if level in known else rng.random(PART)
        features[:, field] = start + (share**_RARE * sizes[field]).astype(np.int64)
    there = rng.random((PART, N_FIELDS)) < PRESENT
    indptr = np.concatenate(([0], np.cumsum(there.sum(axis=1))))
    ones = np.ones(int(indptr[-1]), dtype=np.float32)
    X = sp.csr_matrix((ones, features[there].astype(np.int32), indptr), shape=(PART, FEATURES))
    answer = _EASE + _NOISE * rng.logistic(size=PART)
    for place, (level, weight) in enumerate(_WEIGHTS.items()):
        answer += weight * (2 * _uniform(known[level], N_FIELDS + place) - 1)
    return X, np.where(answer > 0, 1, -1).astype(np.int8)


def field_sizes() -> np.ndarray:
    """How many features each field has."""
    growth = np.geomspace(1, 70_000, N_FIELDS)
    sizes = np.floor(growth * (FEATURES / growth.sum())).astype(np.int64)
    sizes[-1] += FEATURES - sizes.sum()
    return sizes


def _uniform(numbers: np.ndarray, salt: int) -> np.ndarray:
    """Values between 0 and 1 that depend on the numbers and the salt and on nothing else (splitmix64)."""
    with np.errstate(over="ignore"):
        mixed = numbers.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(salt) * np.uint64(
            0xC2B2AE3D27D4EB4F
        )
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed = (mixed ^ (mixed >> np.uint64(shift))) * np.uint64(factor)
    return ((mixed ^ (mixed >> np.uint64(31))) >> np.uint64(11)) * 2.0**-53
