"""`parablock demo`: that of `parablock.demo`."""

from __future__ import annotations

import argparse

from parablock import demo
from parablock.cli.options import Parser, add_common


def make_parser() -> Parser:
    parser = Parser(
        "demo", "[options]", description="Train on a sample of real data, beside scikit-learn, and save a picture."
    )
    demo.add_options(parser)
    add_common(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    return demo.run(options)
