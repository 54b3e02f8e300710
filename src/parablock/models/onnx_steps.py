"""The ONNX graph of a machine as a step of what skl2onnx converts: a pipeline, a search, a voting of several.

skl2onnx asks an estimator that it does not know for its parser, shape calculator and converter (see
`parablock.estimators._onnx`), which lead to the functions here.
"""

from __future__ import annotations

from typing import Any

from sklearn.base import ClassifierMixin

from parablock.models.files import ModelFileError
from parablock.models.onnx_export import to_onnx
from parablock.models.onnx_graph import OPSET


def register(kind: type) -> None:
    """With it the option zipmap=False, which people pass for every classifier, is known; there never is a ZipMap."""
    from skl2onnx import update_registered_converter
    from skl2onnx._parse import _parse_sklearn_simple_model

    def parser(scope: Any, model: Any, inputs: Any, custom_parsers: Any = None) -> Any:
        return _parse_sklearn_simple_model(scope, model, inputs, custom_parsers)

    options = {"zipmap": [False]} if issubclass(kind, ClassifierMixin) else None
    name = f"Parablock{kind.__name__}"
    update_registered_converter(kind, name, set_shapes, add_to_graph, options=options, parser=parser)


def set_shapes(operator: Any) -> None:
    """Give the outputs of skl2onnx's operator the types and shapes that the graph's have."""
    from onnx import TensorProto
    from skl2onnx.common import data_types

    kinds = {
        TensorProto.FLOAT: data_types.FloatTensorType,
        TensorProto.DOUBLE: data_types.DoubleTensorType,
        TensorProto.INT64: data_types.Int64TensorType,
        TensorProto.STRING: data_types.StringTensorType,
        TensorProto.BOOL: data_types.BooleanTensorType,
    }
    for variable, output in zip(operator.outputs, to_onnx(operator.raw_operator).graph.output, strict=True):
        tensor = output.type.tensor_type
        if tensor.elem_type not in kinds:
            raise ModelFileError("skl2onnx has no type for labels above 2^63: use parablock.models.to_onnx.")
        variable.type = kinds[tensor.elem_type]([size.dim_value or None for size in tensor.shape.dim])


def add_to_graph(scope: Any, operator: Any, container: Any) -> None:
    """Add the nodes and constants of the operator's model to skl2onnx's container."""
    import onnx

    if container.target_opset < OPSET:
        raise ModelFileError(f"parablock's ONNX graphs need opset {OPSET}; target_opset is {container.target_opset}.")
    graph = to_onnx(operator.raw_operator).graph
    given = [variable.onnx_name for variable in operator.inputs]
    names = {output.name: variable.onnx_name for output, variable in zip(graph.output, operator.outputs, strict=True)}
    names["X"] = scope.get_unique_variable_name("X")

    def add(operator_type: str, inputs: list[str], outputs: list[str], **attributes: Any) -> None:
        name = scope.get_unique_operator_name(operator_type)
        container.add_node(operator_type, inputs, outputs, op_version=OPSET, name=name, **attributes)

    columns = [scope.get_unique_variable_name("columns") for _ in given]  # in float32, whatever the steps before gave
    for name, column in zip(given, columns, strict=True):
        add("Cast", [name], [column], to=onnx.TensorProto.FLOAT)
    add("Concat", columns, [names["X"]], axis=1)
    for constant in graph.initializer:
        names[constant.name] = scope.get_unique_variable_name(constant.name)
        copy = onnx.TensorProto()
        copy.CopyFrom(constant)
        copy.name = names[constant.name]
        container.initializers.append(copy)
    for node in graph.node:
        for name in node.output:
            names.setdefault(name, scope.get_unique_variable_name(name))
        attributes = {one.name: onnx.helper.get_attribute_value(one) for one in node.attribute}
        add(node.op_type, [names[name] for name in node.input], [names[name] for name in node.output], **attributes)
