"""Where results live: numbers as JSON, tables as sections of ``docs/paper/index.md``, figures as PNG."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.cpu import write_document
from benchmarks.data import REPOSITORY
from benchmarks.running import described, machine

FOLDER = REPOSITORY / "docs" / "paper"


class Store:
    """The results of one experiment at one scale.

    Parameters
    ----------
    experiment, scale : str
    folder : Path
        Of the page, the numbers and the figures.
    """

    def __init__(self, experiment: str, scale: str, folder: Path = FOLDER) -> None:
        self.experiment, self.scale, self.folder = experiment, scale, folder
        self.name = experiment if scale == "small" else f"{experiment}-{scale}"

    @property
    def path(self) -> Path:
        return self.folder / f"{self.name}.json"

    @property
    def figure(self) -> Path:
        return self.folder / f"{self.name}.png"

    def load(self) -> dict[str, Any]:
        """What was written last; empty if nothing was."""
        if not self.path.exists():
            return {}
        stored: dict[str, Any] = json.loads(self.path.read_text(encoding="utf-8"))
        return stored

    def save(self, numbers: Mapping[str, Any]) -> None:
        """Write numbers with the time and the machine."""
        self.keep({"time": datetime.now(UTC).isoformat(timespec="seconds"), "machine": place(), **numbers})

    def keep(self, report: Mapping[str, Any]) -> None:
        """Write a report as it is; an interrupted run leaves the last file whole."""
        self.folder.mkdir(parents=True, exist_ok=True)
        draft = self.path.with_suffix(".part")
        draft.write_text(json.dumps(report, default=float) + "\n", encoding="utf-8")
        os.replace(draft, self.path)

    def publish(self, text: str) -> None:
        """Put a text with the machine that it was measured on into its section of the page, or into a new one."""
        stored, page = self.load(), self.folder / "index.md"
        measured = described(stored["machine"], datetime.fromisoformat(stored["time"]))
        card = f" GPU: {stored['machine']['gpu']}." if stored["machine"].get("gpu") else ""
        before = page.read_text(encoding="utf-8") if page.exists() else "# Results\n"
        if f"<!-- measured: {self.name} -->" not in before:
            page.write_text(f"{before}\n<!-- measured: {self.name} -->\n<!-- end -->\n", encoding="utf-8")
        numbers = f"Seed 0. Numbers: [{self.path.name}]({self.path.name})."
        write_document(self.name, f"{text}\n\n{measured}{card} {numbers}", page)


def place() -> dict[str, Any]:
    """The machine, with its GPU if it has one that PyTorch finds."""
    found = machine()
    try:
        import torch

        found["gpu"] = torch.cuda.get_device_name() if torch.cuda.is_available() else None
    except ImportError:
        found["gpu"] = None
    return found
