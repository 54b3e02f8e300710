"""Attributes of a fitted machine that follow from others, under the names that they have in scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np

from parablock.kernels import Linear


class DerivedAttributes:
    """``coef_`` and ``shape_fit_``."""

    kernel: Any
    support_vectors_: Any
    dual_coef_: np.ndarray
    n_features_in_: int
    _n_rows: int

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, shape (n_outputs, n_features): with a linear kernel ``X @ coef_.T + intercept_`` are
        the decisions (X as the model scales it, where a file's model scales rows). Dense, also after training on CSR
        rows, and computed anew each time, so not to be written to; other kernels have none (AttributeError)."""
        if self.kernel != "linear" and type(self.kernel) is not Linear:
            raise AttributeError(f"coef_ is there with kernel='linear' only, and this one is {self.kernel!r}.")
        coef = self.dual_coef_ @ self.support_vectors_
        coef.flags.writeable = False
        return coef

    @property
    def shape_fit_(self) -> tuple[int, int]:
        """Rows and features of the training data."""
        return self._n_rows, self.n_features_in_
