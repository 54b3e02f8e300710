"""What all rivals have in common: `fit` with a stopwatch that can be asked on the way, and `decision_function`.

    rival = DCSVM(C=32, gamma=32).fit(X, y, watch=moments.append)
    for moment in moments:
        moment.seconds, moment.model.predict(X_test), moment.model.coef

All solve the paper's problem, two classes and no intercept, unless they say otherwise. The time that the listener
takes does not count.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

Own = TypeVar("Own", bound="Rival")


@dataclass(frozen=True)
class Model:
    """What a solver has found.

    Attributes
    ----------
    decision : callable
        Rows to decision values, positive for the label +1.
    coef : ndarray of shape (n,) or None
        Signed coefficients of the training rows, where the solver works on the dual problem, whose objective can be
        computed from them. Predictions need not rest on them alone: see early prediction.
    objective : float or None
        That objective (to be minimised), where the solver knows it anyway.
    """

    decision: Callable[[Any], np.ndarray]
    coef: np.ndarray | None = None
    objective: float | None = None


@dataclass(frozen=True)
class Moment:
    """The model that a solver would give if it were stopped after so many seconds of work; or its last, at its end."""

    seconds: float
    model: Model
    last: bool = False


Watch = Callable[[Moment], None]


class Stopwatch:
    """Counts the seconds of a fit, without those of the listener."""

    def __init__(self, watch: Watch | None = None) -> None:
        self._watch = watch
        self._start = time.perf_counter()

    @property
    def seconds(self) -> float:
        return time.perf_counter() - self._start

    def tell(self, model: Callable[[], Model], seconds: float | None = None, last: bool = False) -> None:
        """Tell the listener, if there is one, of the model, which is made for it alone; of now, or of another time."""
        if self._watch is None:
            return
        now = self.seconds
        self._watch(Moment(now if seconds is None else seconds, model(), last))
        self._start = time.perf_counter() - now


@dataclass
class Rival(ABC):
    """A solver for two classes.

    Parameters
    ----------
    C : float
        Weight of the losses.
    gamma : float
        Of the Gaussian kernel ``exp(-gamma |x - z|^2)``.
    random_state : int

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
    model_ : Model
    seconds_ : float
        That the fit took, listeners not counted.
    """

    C: float = 1.0
    gamma: float = 1.0
    random_state: int = field(default=0, kw_only=True)

    @abstractmethod
    def _train(self, X: Any, y: np.ndarray, clock: Stopwatch) -> Model:
        """Train on rows with labels -1 and +1, telling the clock of every model but the last."""

    def fit(self: Own, X: Any, y: Any, watch: Watch | None = None) -> Own:
        """Train; `watch` is called with each `Moment` on the way, and at the end."""
        self.classes_, labels = np.unique(y, return_inverse=True)
        if len(self.classes_) != 2:
            raise ValueError(
                f"{type(self).__name__} tells two classes apart; y has {len(self.classes_)}. Make it two first, for "
                "example one class against the rest."
            )
        if X.shape[0] != len(labels):
            raise ValueError(f"X has {X.shape[0]} rows and y has {len(labels)} labels; each row needs one label.")
        clock = Stopwatch(watch)
        self.model_ = self._train(X, np.where(labels == 1, 1.0, -1.0), clock)
        self.seconds_ = clock.seconds
        clock.tell(lambda: self.model_, last=True)
        return self

    def decision_function(self, X: Any) -> np.ndarray:
        """Positive for ``classes_[1]``."""
        if not hasattr(self, "model_"):
            raise ValueError(f"This {type(self).__name__} is not fitted yet: call fit first.")
        return self.model_.decision(X)

    def predict(self, X: Any) -> np.ndarray:
        return self.classes_[(self.decision_function(X) > 0).astype(np.intp)]

    def score(self, X: Any, y: Any) -> float:
        """Share of the rows that are right."""
        return float(np.mean(self.predict(X) == np.asarray(y)))
