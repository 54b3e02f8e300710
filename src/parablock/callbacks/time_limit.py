"""No longer than so many seconds."""

from __future__ import annotations

from parablock.callbacks.base import Callback
from parablock.callbacks.watching import Run


class TimeLimit(Callback):
    """Ends a fit in time, in good order, with the model that there is by then and a ConvergenceWarning.

    Training ends after the iteration after which another one as long would not end in time; at least one is made. What
    comes after the last iteration (a look at the rows that rest, for the certificate) is not counted, nor is the
    partition that comes before the first one cut short. With a ``checkpoint``, one is written at the end, so that
    ``resume=True`` can go on; in the same process ``warm_start=True`` does.

    Parameters
    ----------
    seconds : float
        From the start of the fit.

    Examples
    --------
    >>> import warnings
    >>> from parablock import KernelSVC
    >>> from parablock.callbacks import TimeLimit
    >>> from parablock.datasets import load_covtype_sample
    >>> X, y, X_test, y_test = load_covtype_sample()
    >>> model = KernelSVC(C=32, gamma=32, n_blocks=4, random_state=0).set_callbacks(TimeLimit(0.001))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     model = model.fit(X[:1000], y[:1000])
    >>> model.stop_reason_, str(caught[0].message)[:46]
    ('stopped', 'The time limit of 0.001 s was reached after 1 ')
    """

    def __init__(self, seconds: float) -> None:
        if not seconds > 0:
            raise ValueError(f"seconds must be positive, got {seconds!r}.")
        self.seconds = seconds

    def __repr__(self) -> str:
        return f"TimeLimit({self.seconds!r})"

    def iterated(self, run: Run) -> bool:
        memory, now = run.memory(self), run.seconds
        # The first iteration's time has the partition in it, which does not come again.
        took = now - memory.last if hasattr(memory, "last") else 0.0
        memory.last = now
        return now + took > self.seconds and run.stop(f"The time limit of {self.seconds:g} s was reached")
