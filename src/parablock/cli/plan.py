"""`parablock plan`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict

from parablock.cli import options as kinds
from parablock.cli.options import Parser, add_common

_EXAMPLES = """\
examples:
  parablock plan --rows 464810 --features 54 --ranks 16 --threads 1
  parablock plan --rows 1e8 --features 54 --ranks 1000 --data sharded --memory-limit 64GB
  parablock plan --rows 50000 --features 54 --measure

The number of support vectors matters more than anything else: fit a few thousand rows, see how it
grows, and give it with --support.
"""
_ASSUMED = {"cpu": "a server of 16 cores", "cuda": "an NVIDIA H200"}


def make_parser() -> Parser:
    from parablock.planning.machines import DEVICES, NETWORKS

    parser = Parser(
        "plan",
        "--rows N --features N [options]",
        description="Forecast memory, communication and time of a fit: on servers of 16 cores, on GPUs (H200), or by\n"
        "--measure on machines like this one.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("--rows", type=kinds.whole, required=True, help="of the training data")
    add("--features", type=kinds.whole, required=True, help="of the training data")
    add("--ranks", type=kinds.whole, default=1, help="processes that train together (1)")
    add("--threads", type=kinds.whole, help="of each rank (16, those of a server; with --measure this machine's)")
    add("--device", choices=list(DEVICES), default="cpu", help="what each rank computes with (cpu)")
    add("--support", type=_share_or_count, help="support vectors, or their share of the rows as 0.3")
    add("--watched", type=_share_or_count, help="rows that do not rest, likewise; 1.0 for a wide kernel")
    add("--iterations", type=kinds.whole, help="outer ones")
    add("--dense-coefficients", dest="coefficients", action="store_const", const="dense", default="sparse",
        help="every row has a coefficient: logistic regression")  # fmt: skip
    add("--ridge", dest="coefficients", action="store_const", const="ridge",
        help="ridge regression: every row has a coefficient, and few rows are solved at once")  # fmt: skip
    add("--outputs", type=kinds.whole, default=1, help="classes (1 for two of them) or targets (1)")
    add("--nonzeros", type=kinds.positive, help="nonzero features a row, of sparse data")
    add("--dtype", choices=["float32", "float64"], default="float32", help="precision of the features (float32)")
    add("--data", choices=["replicated", "sharded"], default="replicated", help="does each rank have all rows?")
    add("--network", choices=list(NETWORKS), default="InfiniBand", help="between ranks (InfiniBand)")
    add("--memory-limit", metavar="SIZE", type=kinds.memory, help="for kernel values on each rank, such as 64GB")
    add("--tol", type=kinds.positive, default=1e-3, help="tolerance at which training ends (0.001)")
    add("--measure", action="store_true", help="forecast for this machine, which is measured for some seconds")
    add("--json", action="store_true", help="as JSON, in bytes and seconds")
    add_common(parser)
    return parser


def _share_or_count(text: str) -> int | float:
    """A share where it is written with a point and is at most one; a count otherwise."""
    value = kinds.positive(text)
    return value if value <= 1 and "." in text else kinds.whole(text)


def run(options: argparse.Namespace) -> int:
    from parablock.planning import Machine, plan

    asked = {name: value for name, value in vars(options).items() if name not in ("measure", "json", "traceback")}
    machine = Machine.measured(max(9, min(options.features, 1000))) if options.measure else None
    forecast = plan(**asked, machine=machine)
    if options.json:
        print(json.dumps(asdict(forecast), indent=2))
        return 0
    print(forecast)
    print("for this machine" if options.measure else f"for {_ASSUMED[options.device]}; --measure: for this machine")
    return 0
