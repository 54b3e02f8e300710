"""A small builder of ONNX graphs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from parablock.models.files import ModelFileError

OPSET, _IR_VERSION = 17, 8  # of 2022: newer runtimes run it too


class Graph:
    """Nodes and constants of a graph with the input ``X``, (n, n_features).

    Parameters
    ----------
    name : str
    n_features : int

    Attributes
    ----------
    rows : str
        What kernels are computed of: the input, or the output of nodes that scale it.
    """

    def __init__(self, name: str, n_features: int) -> None:
        try:
            import onnx
        except ImportError as error:
            raise ImportError("ONNX export needs onnx: pip install 'parablock[onnx]'.") from error
        self.onnx = onnx
        self.INT64 = onnx.TensorProto.INT64
        self.name, self.rows = name, "X"
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.inputs = [self._float("X", ("n", n_features))]
        self.outputs: list[Any] = []
        self._labels: Any = None

    @classmethod
    def body(cls, name: str, inputs: Sequence[str], shapes: Sequence[tuple[Any, ...]]) -> Graph:
        """A graph inside another one, with inputs of its own."""
        made = cls(name, 0)
        made.inputs = [made._float(f"{name}.{given}", shape) for given, shape in zip(inputs, shapes, strict=True)]
        made._own = {given: f"{name}.{given}" for given in inputs}
        return made

    _own: dict[str, str] = {}

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        """A constant; numbers that float32 cannot hold are refused."""
        array = np.ascontiguousarray(values, dtype=dtype).reshape(np.shape(values))
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise ModelFileError("The model has numbers that are too large for float32, in which ONNX models compute.")
        return self._keep(self.onnx.numpy_helper.from_array(array, self._fresh()))

    def labels(self, classes: np.ndarray) -> str:
        """Class labels as a constant: truth values, int64 (uint64 where they are larger), double or text."""
        if classes.dtype.kind in "iu":
            fits = classes.max() <= np.iinfo(np.int64).max
            made = self.onnx.numpy_helper.from_array(classes.astype(np.int64 if fits else np.uint64), self._fresh())
        elif classes.dtype.kind in "bf":
            wide = classes if classes.dtype.kind == "b" else classes.astype(np.float64)
            made = self.onnx.numpy_helper.from_array(wide, self._fresh())
        elif all(isinstance(label, str) for label in classes):
            text = [label.encode() for label in classes.tolist()]
            made = self.onnx.helper.make_tensor(self._fresh(), self.onnx.TensorProto.STRING, [len(text)], text)
        else:
            raise ModelFileError(f"ONNX labels are all numbers or all text; this model's are {classes.tolist()}.")
        self._labels = made
        return self._keep(made)

    def add(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """A node; its output."""
        output = self._fresh()
        given = [self._own.get(name, name) for name in inputs]
        self.nodes.append(self.onnx.helper.make_node(operator, given, [output], **attributes))
        return output

    def output(self, name: str, values: str, columns: int) -> None:
        """Values (n, columns) under a name."""
        self.nodes.append(self.onnx.helper.make_node("Identity", [values], [name]))
        self.outputs.append(self._float(name, ("n", columns)))

    def label_output(self, name: str, values: str) -> None:
        self.nodes.append(self.onnx.helper.make_node("Identity", [values], [name]))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, self._labels.data_type, ("n",)))

    def graph(self) -> Any:
        return self.onnx.helper.make_graph(self.nodes, self.name, self.inputs, self.outputs, self.constants)

    def model(self, description: str) -> Any:
        from parablock import __version__

        made = self.onnx.helper.make_model(
            self.graph(),
            producer_name="parablock",
            producer_version=__version__,
            doc_string=description,
            opset_imports=[self.onnx.helper.make_opsetid("", OPSET)],
            ir_version=_IR_VERSION,
        )
        self.onnx.checker.check_model(made)
        return made

    def _float(self, name: str, shape: Sequence[Any]) -> Any:
        return self.onnx.helper.make_tensor_value_info(name, self.onnx.TensorProto.FLOAT, shape)

    def _fresh(self) -> str:
        return f"{self.name}.{len(self.nodes) + len(self.constants)}"

    def _keep(self, tensor: Any) -> str:
        self.constants.append(tensor)
        return str(tensor.name)
