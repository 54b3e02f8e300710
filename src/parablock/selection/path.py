"""Models along C: one after the other over the same rows and kernel values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, TypeVar

import numpy as np

from parablock.engines import LocalEngine, engine_for
from parablock.estimators._machine import KernelMachine
from parablock.kernels import Kernel
from parablock.problem import Problem
from parablock.selection.grids import c_values
from parablock.settings import Settings
from parablock.training import Ground, Trained, Watch, prepared, prepared_directly

Machine = TypeVar("Machine", bound=KernelMachine)


def fitted_path(
    kind: type[Machine], X: Any, y: Any, Cs: Any, sample_weight: Any, parameters: Mapping[str, Any]
) -> list[Machine]:
    """What `KernelMachine.path` does."""
    if "C" in parameters:
        raise TypeError(f"{kind.__name__}.path() takes the values of C as Cs, not C={parameters['C']!r}.")
    make: Callable[..., Machine] = kind
    models = [make(C=C, **parameters) for C in c_values(Cs).tolist()]
    _refuse(models[0], X)
    with Together() as together:
        for model in sorted(models, key=lambda model: model.C):
            model.__dict__["_train"] = together.train
            try:
                model.fit(X, y, sample_weight)
            finally:
                del model.__dict__["_train"]
    return models


def _refuse(model: KernelMachine, X: Any) -> None:
    """What several fits cannot share."""
    if not isinstance(engine_for(model.engine, X), LocalEngine):
        raise ValueError(
            f"path trains on this machine alone, so engine must be 'local' and X no Dask collection; got engine="
            f"{model.engine!r} and X of type {type(X).__name__}. Fit one model after the other, with warm_start=True."
        )
    if model.checkpoint is not None:
        raise ValueError(
            f"path has no checkpoints, because its models would overwrite each other's; got checkpoint="
            f"{model.checkpoint!r}. Fit one model after the other, with warm_start=True."
        )


class Together:
    """Trains problems that differ in C alone: each starts from the last solution, in the same session."""

    def __init__(self) -> None:
        self._session = ExitStack()
        self._ground: Ground | None = None
        self._direct: Ground | None = None
        self._coef: np.ndarray | None = None

    def __enter__(self) -> Together:
        return self

    def __exit__(self, *error: Any) -> None:
        self._session.close()

    def train(
        self,
        X: Any,
        kernel: Kernel,
        problem: Problem,
        settings: Settings,
        rng: np.random.Generator,
        start: np.ndarray | None = None,
        watch: Watch | None = None,
    ) -> Trained:
        """As `parablock.training.train`; rows, kernel and settings are those of the first call."""
        if settings.solves_directly(X, problem):
            if self._direct is None:
                self._direct = self._session.enter_context(prepared_directly(X, kernel, settings, rng))
            trained = self._direct.solve_directly(problem, watch)
            if trained is not None:
                return trained
        if self._ground is None:
            self._ground = self._session.enter_context(prepared(X, kernel, settings, rng))
        trained = self._ground.train(problem, rng, start if self._coef is None else self._coef, rest=False, watch=watch)
        if trained.solution.reason == "interrupted":
            raise KeyboardInterrupt
        self._coef = trained.solution.state.coef
        return trained
