"""`parablock warm-up`."""

from __future__ import annotations

import argparse

from parablock.cli.options import Parser, add_common

_EXAMPLES = """\
examples:
  parablock warm-up
  NUMBA_CACHE_DIR=/opt/parablock/cache parablock warm-up

Fits compile what they need for the processor at hand: every loss, precision and format of the data takes some seconds,
once. This does it for all of them, for instance when a container is built or before times are measured. Numba keeps the
result beside the installed source, or in NUMBA_CACHE_DIR, for processes on the same kind of processor.
"""


def make_parser() -> Parser:
    parser = Parser("warm-up", "", description="Compile once what all later commands and fits need.", epilog=_EXAMPLES)
    add_common(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    from parablock.warming import warm_up

    seconds = warm_up(lambda text: print(text, flush=True))
    print(f"compiled for {seconds:.1f} s" if seconds else "there was nothing left to compile")
    return 0
