"""What skl2onnx asks an estimator for."""

from __future__ import annotations

from typing import Any


class OnnxStep:
    """An estimator that ``skl2onnx.to_onnx`` takes, alone or as a part of pipelines, searches and ensembles. Nothing of
    skl2onnx is imported before it asks."""

    def onnx_parser(self) -> None:
        """For skl2onnx, which asks this first: register the estimator. Outputs are called as skl2onnx calls them."""
        from parablock.models.onnx_steps import register

        register(type(self))

    def onnx_shape_calculator(self) -> Any:
        """For skl2onnx: a function that sets types and shapes of the outputs."""
        from parablock.models.onnx_steps import set_shapes

        return set_shapes

    def onnx_converter(self) -> Any:
        """For skl2onnx: a function that adds the graph of `parablock.models.to_onnx` to that of a pipeline."""
        from parablock.models.onnx_steps import add_to_graph

        return add_to_graph
