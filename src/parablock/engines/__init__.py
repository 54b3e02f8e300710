"""Engines: how machines talk. Local for now: one machine."""

from parablock.engines.base import Engine
from parablock.engines.local import LocalEngine

ENGINES: dict[str, type[LocalEngine]] = {"local": LocalEngine}

__all__ = ["ENGINES", "Engine", "LocalEngine"]
