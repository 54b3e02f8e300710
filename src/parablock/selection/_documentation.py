"""The parts of the docstrings that are the same for all estimators that choose C and gamma."""

from __future__ import annotations

from textwrap import indent
from typing import TypeVar

T = TypeVar("T", bound=type)

_CHOICE = """\
Cs : int or array of float, default=5
    Values of C to try; or how many, from 1/4 on, each four times the one before.
gammas : int, "scale", "auto", or array of float, default=5
    Values of gamma to try; or how many, around "scale", which is 1 / (n_features * X.var()) of all rows, each four
    times the one before. Kernels without gamma have a grid over C alone.
cv : int, splitter or iterable of pairs of row numbers, default=None
    Folds, as in scikit-learn: None means five, stratified for a classifier.
scoring : str, callable, list, dict or None, default=None
    What is best, as in scikit-learn: None means accuracy of a classifier and R2 of a regressor.
refit : bool, str or callable, default=True
    Whether to train with the best parameters on all rows. With several scores the name of the one to choose by; or a
    function of ``cv_results_`` that returns the number of the best.
return_train_score : bool, default=False
    Whether ``cv_results_`` has the scores on the training rows too."""

_PARAMETERS = """\
kernel : str or callable, default="rbf"
    As `parablock.KernelSVC` takes it.
degree : int, default=3
    Of the polynomial kernel.
coef0 : float, default=0.0
    Of the polynomial and sigmoid kernels.
fit_intercept : bool, default=True
tol : float, default=1e-3
    Training ends when no optimality condition of any fold is violated by more.
max_iter : int, default=1000
    Most outer iterations for one C and gamma.
partition : str or array of shape (n_samples,), default="tree"
    The first blocks: "tree", "kmeans", "kernel_kmeans", "random", or a block label for every row.
n_blocks : int or None, default=None
    Number of blocks in the first iteration; None chooses blocks that suit the cache.
device : {"cpu", "cuda", "auto"}, default="cpu"
n_jobs : int or None, default=None
    Threads; None and -1 mean all cores.
memory_limit : int, str or None, default=None
    Memory for kernel values, in bytes or as "500MB" or "2GB"; None takes half of what is free, at most 4 GB. Kernel
    values that fit (4 or 8 bytes times the square of the number of rows) are computed once for all folds and all C.
verbose : int, default=0
    1 writes a line for every C and gamma to standard error, 2 also one an iteration.
random_state : int, RandomState or None, default=None
    Of partitions and sampling; folds have that of their splitter."""

_ATTRIBUTES = """\
best_params_ : dict
    The C and gamma with the best mean score.
best_score_ : float
    Their mean score.
best_index_ : int
    Their place in ``cv_results_``.
best_estimator_ : estimator
    The machine that was trained with them on all rows; not with ``refit=False``.
cv_results_ : dict of arrays
    As that of GridSearchCV: params, param_C, param_gamma, split0_test_score, ..., mean_test_score, std_test_score,
    rank_test_score, mean_fit_time (an equal share of what all folds took together), ...
kernel_evaluations_ : int
    Kernel values computed for the search.
n_iter_ : int
    Outer iterations of the search.
n_splits_ : int
    Number of folds.
scorer_ : function or a dict
multimetric_ : bool
    Whether there are several scores.
refit_time_ : float
    Seconds that the last training took."""


def documented(cls: T) -> T:
    """Fill in the shared parameters and attributes of a docstring."""
    assert cls.__doc__ is not None
    shared = {"    {choice}": _CHOICE, "    {parameters}": _PARAMETERS, "    {attributes}": _ATTRIBUTES}
    for place, text in shared.items():
        cls.__doc__ = cls.__doc__.replace(place, indent(text, "    "))
    return cls
