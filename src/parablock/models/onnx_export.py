"""Models as ONNX graphs of standard operators, in float32."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from parablock.kernels import (
    RBF,
    Chi2,
    Cosine,
    Kernel,
    Laplacian,
    Linear,
    Matern32,
    Matern52,
    Polynomial,
    Precomputed,
    Sigmoid,
)
from parablock.models.chosen import chosen
from parablock.models.exported import Exported, exported
from parablock.models.files import AnyPath, ModelFileError
from parablock.models.onnx_graph import Graph
from parablock.replacing import replacing
from parablock.scaling import Scaling

_MOST_BYTES = 2_000_000_000  # protobuf ends at 2 GiB
_TINY = 1e-30


def to_onnx(model: Any, path: AnyPath | None = None) -> Any:
    """A fitted estimator as an ONNX model, which onnxruntime and many other programs run without Python.

    Input ``X``: float32 of shape (n, n_features), any n. Outputs are named as by skl2onnx (without its ZipMap):

    - a classifier has ``label`` (n,) and, one column a class, ``scores``, or ``probabilities`` of a
      `KernelLogisticRegression`. Of two classes the second column of the scores is the decision value, the first its
      negative;
    - a regressor has ``variable`` (n, n_targets).

    Everything is computed in float32, so the last digits differ from those of float64. The graph holds all kernel
    values of a call at once: pass large data some thousand rows at a time.

    Parameters
    ----------
    model : estimator
        Fitted, with any kernel but a Python function; or a search, or a Pipeline of scalers, that ends in one, as
        `parablock.save` takes it.
    path : str or path, optional
        File to write as well.

    Returns
    -------
    onnx.ModelProto

    Examples
    --------
    >>> from parablock import KernelSVC
    >>> from parablock.models import to_onnx
    >>> model = KernelSVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], ["low", "low", "high", "high"])
    >>> [output.name for output in to_onnx(model).graph.output]
    ['label', 'scores']
    """
    model = chosen(model)
    machine = exported(model, "ONNX")
    kernel = type(machine.kernel)
    if kernel not in (Linear, Precomputed, *_KERNELS):
        raise ModelFileError(f"ONNX export knows the kernels of parablock.kernels; {kernel.__name__} is another one.")
    size = 4 * machine.vectors.shape[0] * machine.vectors.shape[1]
    if size > _MOST_BYTES and kernel is not Linear:
        raise ModelFileError(
            f"ONNX files end at 2 GB, and the support vectors take {size / 1e9:.1f} GB in its dense format. Use "
            "parablock.save, or parablock.models.to_libsvm for sparse data."
        )
    graph = Graph("parablock", model.n_features_in_)
    if machine.scaling is not None:
        graph.rows = _scaled(graph, machine.scaling)
    values = _decision(graph, machine, model)
    if machine.classes is None:
        graph.output("variable", values, len(machine.coef))
    else:
        _classes(graph, machine, values)
    made = graph.model(f"{type(model).__name__} with kernel {kernel.__name__}, written by parablock")
    if path is not None:
        with replacing(path) as file:
            file.write(made.SerializeToString())
    return made


def _scaled(graph: Graph, scaling: Scaling) -> str:
    """The rows as the kernel takes them. A shift of two float32 numbers is as exact as that of float64."""
    high = scaling.shift.astype(np.float32).astype(np.float64)
    rows = graph.add("Sub", graph.rows, graph.constant(high))
    rows = graph.add("Sub", rows, graph.constant(scaling.shift - high))
    return graph.add("Mul", rows, graph.constant(scaling.scale))


def _decision(graph: Graph, machine: Exported, model: Any) -> str:
    """Decision values (n, n_outputs)."""
    kernel, intercept = machine.kernel, graph.constant(machine.intercept)
    if isinstance(kernel, Linear) or machine.coef.shape[1] == 0:
        # One vector of weights an output does for all support vectors.
        none = np.zeros((model.n_features_in_, len(machine.coef)))
        weights = machine.vectors.T @ machine.coef.T if machine.coef.shape[1] else none
        return graph.add("Gemm", graph.rows, graph.constant(weights), intercept)
    if isinstance(kernel, Precomputed):
        values = graph.add("Gather", graph.rows, graph.constant(model.support_, np.int64), axis=1)
    else:
        values = _KERNELS[type(kernel)](graph, kernel, machine.dense_vectors, model)
    return graph.add("Gemm", values, graph.constant(machine.coef.T), intercept)


def _classes(graph: Graph, machine: Exported, values: str) -> None:
    assert machine.classes is not None
    count = len(machine.classes)
    if count == 2:
        positive = graph.add("Greater", values, graph.constant(0.0))
        best = graph.add("Squeeze", graph.add("Cast", positive, to=graph.INT64), graph.constant([1], np.int64))
        values = graph.add("Concat", graph.add("Neg", values), values, axis=1)
        probabilities = graph.add("Sigmoid", values) if machine.probabilities else ""
    else:
        best = graph.add("ArgMax", values, axis=1, keepdims=0)
        # sigmoid(f) scaled to sum one is the softmax of log sigmoid(f) = -softplus(-f), which never divides by zero.
        log = graph.add("Neg", graph.add("Softplus", graph.add("Neg", values)))
        probabilities = graph.add("Softmax", log, axis=1) if machine.probabilities else ""
    graph.label_output("label", graph.add("Gather", graph.labels(machine.classes), best))
    graph.output(*(("probabilities", probabilities) if machine.probabilities else ("scores", values)), count)


def _products(graph: Graph, x: str, vectors: np.ndarray, scale: float = 1.0, constant: float = 0.0) -> str:
    """scale x'z + constant, (n, n_support)."""
    return graph.add("Gemm", x, graph.constant(vectors), graph.constant([constant]), alpha=scale, transB=1)


def _squared_distances(graph: Graph, vectors: np.ndarray, model: Any) -> str:
    """|x - z|^2 = |x|^2 + |z|^2 - 2 x'z. Around their centre the three are small, and little is lost in their sum."""
    centre = vectors.mean(axis=0) if model._centre is None else model._centre
    centre = centre.astype(np.float32)
    x = graph.add("Sub", graph.rows, graph.constant(centre))
    vectors = (vectors - centre).astype(np.float32).astype(np.float64)
    own = graph.add("ReduceSum", graph.add("Mul", x, x), graph.constant([1], np.int64), keepdims=1)
    both = graph.add("Add", own, graph.constant((vectors**2).sum(axis=1)))
    distances = graph.add("Add", both, _products(graph, x, vectors, -2.0))
    return graph.add("Max", distances, graph.constant(0.0))


def _rbf(graph: Graph, kernel: Any, vectors: np.ndarray, model: Any) -> str:
    distances = _squared_distances(graph, vectors, model)
    return graph.add("Exp", graph.add("Mul", distances, graph.constant(-kernel.gamma)))


def _matern(graph: Graph, kernel: Any, vectors: np.ndarray, model: Any) -> str:
    """(1 + a) exp(-a), with a^2 / 3 more in the bracket of Matern 5/2."""
    wide = isinstance(kernel, Matern52)
    scale = math.sqrt((10.0 if wide else 6.0) * kernel.gamma)
    a = graph.add("Mul", graph.add("Sqrt", _squared_distances(graph, vectors, model)), graph.constant(scale))
    bracket = graph.add("Add", a, graph.constant(1.0))
    if wide:
        bracket = graph.add("Add", bracket, graph.add("Mul", graph.add("Mul", a, a), graph.constant(1.0 / 3.0)))
    return graph.add("Mul", bracket, graph.add("Exp", graph.add("Neg", a)))


def _sum_of_terms(graph: Graph, kernel: Any, vectors: np.ndarray, model: Any) -> str:
    """exp(-gamma sum_f term(x_f, z_f)), feature after feature: all at once would take n_features times the memory."""
    body = Graph.body("sum", ["total", "x", "z"], [("n", len(vectors)), ("n",), (len(vectors),)])
    column = body.add("Unsqueeze", "x", body.constant([1], np.int64))
    term = body.add("Sub", column, "z")
    if isinstance(kernel, Chi2):
        total = body.add("Max", body.add("Add", column, "z"), body.constant(_TINY))  # 0 / 0 is 0
        term = body.add("Div", body.add("Mul", term, term), total)
    else:
        term = body.add("Abs", term)
    body.output("sum", body.add("Add", "total", term), len(vectors))
    n = graph.add("Shape", graph.rows, start=0, end=1)
    shape = graph.add("Concat", n, graph.constant([len(vectors)], np.int64), axis=0)
    start, features = graph.add("ConstantOfShape", shape), graph.add("Transpose", graph.rows, perm=[1, 0])
    total = graph.add("Scan", start, features, graph.constant(vectors.T), body=body.graph(), num_scan_inputs=2)
    return graph.add("Exp", graph.add("Mul", total, graph.constant(-kernel.gamma)))


def _polynomial(graph: Graph, kernel: Any, vectors: np.ndarray, model: Any) -> str:
    base = _products(graph, graph.rows, vectors, kernel.gamma, kernel.coef0)
    return graph.add("Pow", base, graph.constant(float(kernel.degree)))


def _sigmoid(graph: Graph, kernel: Any, vectors: np.ndarray, model: Any) -> str:
    return graph.add("Tanh", _products(graph, graph.rows, vectors, kernel.gamma, kernel.coef0))


def _cosine(graph: Graph, kernel: Any, vectors: np.ndarray, model: Any) -> str:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    directions = vectors / np.where(lengths > 0, lengths, 1.0)
    own = graph.add("ReduceSum", graph.add("Mul", graph.rows, graph.rows), graph.constant([1], np.int64), keepdims=1)
    length = graph.add("Max", graph.add("Sqrt", own), graph.constant(_TINY))  # 0 / 0 is 0
    return graph.add("Div", _products(graph, graph.rows, directions), length)


_KERNELS: dict[type[Kernel], Callable[[Graph, Any, np.ndarray, Any], str]] = {
    RBF: _rbf,
    Matern32: _matern,
    Matern52: _matern,
    Laplacian: _sum_of_terms,
    Chi2: _sum_of_terms,
    Polynomial: _polynomial,
    Sigmoid: _sigmoid,
    Cosine: _cosine,
}
