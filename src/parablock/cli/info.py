"""`parablock info`."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import Any

from parablock.cli.options import Parser, add_common
from parablock.cli.words import on_a_line
from parablock.planning.forecast import size

_MOST = 12  # entries of a list that are shown


def make_parser() -> Parser:
    parser = Parser("info", "MODEL [--json]", description="Tell what is in a model file, parablock's or LIBSVM's.")
    parser.add_argument("model", metavar="MODEL", help="the file")
    parser.add_argument("--json", action="store_true", help="as JSON, with all of it")
    add_common(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    from parablock.models import describe

    told = describe(options.model)
    if options.json:
        print(json.dumps(told, indent=2))
        return 0
    rows = list(_rows(told))
    width = max(len(name) for name, _ in rows)
    for name, text in rows:
        print(f"{name:<{width}}  {text}".rstrip())
    return 0


def _rows(told: dict[str, Any], indent: str = "") -> Iterator[tuple[str, str]]:
    """Names and values, those of inner dictionaries indented."""
    for key, value in told.items():
        name = indent + key.removeprefix("n_").rstrip("_").replace("_", " ")
        if isinstance(value, dict):
            yield name, ""
            yield from _rows(value, indent + "  ")
        else:
            yield name, _readable(key, value)


def _readable(name: str, value: Any) -> str:
    if name == "bytes":
        return size(value)
    if isinstance(value, list):
        shown = ", ".join(_readable("", inner) for inner in value[:_MOST])
        return shown + (f" and {len(value) - _MOST} more" if len(value) > _MOST else "")
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, int):
        return f"{value:,}" if abs(value) >= 10_000 else str(value)
    return f"{value:.6g}" if isinstance(value, float) else on_a_line(str(value))
