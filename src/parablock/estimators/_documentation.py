"""The parts of the estimators' docstrings that are the same for all of them."""

from __future__ import annotations

from textwrap import indent
from typing import TypeVar

T = TypeVar("T", bound=type)

_PARAMETERS = """\
kernel : str or callable, default="rbf"
    "rbf", "laplacian", "chi2", "matern32", "matern52", "linear", "polynomial" (or "poly"), "sigmoid", "cosine",
    "precomputed" (X is then the kernel matrix), or a function of two sets of rows that returns the matrix of
    their kernel values; for a function the rows may be of any kind, such as texts.
gamma : "scale", "auto" or float, default="scale"
    Of the kernels that have one: 1 / (n_features * X.var()), 1 / n_features, or the number itself.
degree : int, default=3
    Of the polynomial kernel.
coef0 : float, default=0.0
    Of the polynomial and sigmoid kernels.
fit_intercept : bool, default=True
    True solves LIBSVM's problem (free bias: coefficients sum to zero), False the paper's.
tol : float, default=1e-3
    Training ends when no optimality condition is violated by more (as in LIBSVM and scikit-learn's SVC). For ridge and
    quantile regression relative to the spread of the targets.
max_iter : int, default=1000
    Most outer iterations, of which each is thousands of updates of coefficients (scikit-learn's -1, no limit, is not
    needed).
partition : str or array of shape (n_samples,), default="tree"
    The first blocks: "tree" (balanced), "kmeans", "kernel_kmeans", "random", or a block label for every row.
n_blocks : int or None, default=None
    Number of blocks in the first iteration; None chooses blocks that suit the cache.
block_solver : {"greedy", "random", "cyclic"} or BlockSolver, default="greedy"
    Coordinate descent inside a block.
line_search : {"auto", "exact", "armijo"}, default="auto"
    "exact" for piecewise quadratic losses, "armijo" for any; "auto" takes the first that applies.
regroup : bool, default=True
    True makes fresh blocks of what can still move in every iteration; False is the paper's Algorithm 1.
prediction : {"global", "local"}, default="global"
    "local" predicts with the model of the nearest block (needs ``regroup=False``).
device : {"cpu", "cuda", "auto"}, default="cpu"
    What computes: the cores, an NVIDIA GPU (needs ``parablock[gpu]``), or a GPU where there is one.
engine : {"local", "mpi"} or Engine, default="local"
    Which machines take part: this one, the processes that mpiexec started (`parablock.engines.MPIEngine` has
    options), or the workers of a Dask cluster (``parablock.engines.DaskEngine()``; "dask" is no name of it).
n_jobs : int or None, default=None
    Threads; None and -1 mean all cores. 0 is an error.
memory_limit : int, str or None, default=None
    Memory for kernel values, in bytes or as "500MB" or "2GB"; None takes half of what is free, at most 4 GB;
    on a GPU all that is free there.
checkpoint : str, path, Checkpoint or None, default=None
    File in which training leaves how far it got, every ten minutes (`parablock.Checkpoint` has options) and when the
    process is asked to terminate (SIGTERM).
resume : bool or "auto", default=False
    Go on from that file; "auto" starts from the beginning where there is none.
warm_start : bool, default=False
    Start from the last fit's coefficients, also when parameters such as C have changed since.
verbose : int, default=0
    1 writes a line an iteration to standard error.
random_state : int, RandomState or None, default=None
    Of partitions, sampling and the random block solver."""

_ATTRIBUTES = """\
support_ : ndarray of shape (n_support,)
    Row numbers of the support vectors.
n_support_ : ndarray of shape (n_classes,)
    How many of them are of each class; a regressor's holds one number.
support_vectors_ : array or CSR matrix of shape (n_support, n_features)
    Empty for a precomputed kernel.
dual_coef_ : ndarray of shape (n_outputs, n_support)
    Signed coefficients of the kernel expansion; a dense array, also where the data are sparse.
coef_ : ndarray of shape (n_outputs, n_features)
    With ``kernel="linear"`` only: the weights of the features. Dense, also where the data are sparse.
intercept_ : ndarray of shape (n_outputs,)
n_iter_ : int
    Outer iterations made.
history_ : list of Record
    One record an outer iteration: seconds, objective, duality_gap, violation, step, active and changed
    variables, kernel_evaluations and more; ``pandas.DataFrame(model.history_)`` makes a table of it.
stop_reason_ : {"converged", "out of iterations", "stalled", "interrupted", "stopped"}
    Why training ended; "stopped" is by a callback.
dual_objective_ : float
    Dual value reached, a lower bound of the primal one, of the kernel matrix in the precision of the data;
    ``history_`` has its negative, which is minimised.
duality_gap_ : float
    Primal minus dual value, of the kernel matrix in the precision of the data: how far the model can be from
    optimal. `certify` computes it in float64.
violation_ : float
    Largest violation of the optimality conditions, of the same matrix, in the units of `tol`.
kernel_evaluations_ : int
    Kernel values computed.
partition_ : Partition
    The first blocks; ``partition_.report()`` tells their sizes and quality.
shape_fit_ : tuple of int
    Rows and features of the training data."""


def documented(cls: T) -> T:
    """Fill in the shared parameters and attributes of an estimator's docstring."""
    assert cls.__doc__ is not None
    shared = {"    {parameters}": _PARAMETERS, "    {attributes}": _ATTRIBUTES}
    for place, text in shared.items():
        cls.__doc__ = cls.__doc__.replace(place, indent(text, "    "))
    return cls
