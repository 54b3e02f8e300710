"""What a data file holds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Data:
    """Features and labels, as a data file holds them.

    Attributes
    ----------
    X : array or CSR matrix of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,) or None
        Numbers or text; None where the file has no labels.
    names : list of str or None
        Of the features, where the file has them.

    Examples
    --------
    >>> import numpy as np
    >>> from parablock.datasets import Data
    >>> Data(np.eye(2), np.array(["a", "b"])).y.tolist()
    ['a', 'b']
    """

    X: Any
    y: np.ndarray | None
    names: list[str] | None = None
