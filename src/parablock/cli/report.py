"""`parablock report`."""

from __future__ import annotations

import argparse
from pathlib import Path

from parablock.cli import options as kinds
from parablock.cli.failures import say
from parablock.cli.options import Parser, add_common
from parablock.cli.paths import refuse_overwriting


def make_parser() -> Parser:
    parser = Parser(
        "report", "LOG [-o FILE]", description="Make a web page of the log that 'parablock train --log' wrote."
    )
    parser.add_argument("log", metavar="LOG", help="the log, a line of JSON an iteration")
    parser.add_argument("-o", "--output", metavar="FILE", type=kinds.output, help="page to write (LOG.html)")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    add_common(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    from parablock.report import write_report

    page = options.output or str(Path(options.log).with_suffix(".html"))
    refuse_overwriting({"the log": options.log}, {"the page -o": page})
    write_report(options.log, page)
    if not options.quiet:
        say(f"wrote {page}")
    return 0
