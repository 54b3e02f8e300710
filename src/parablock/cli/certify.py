"""`parablock certify`."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import Any

from parablock.cli import options as kinds
from parablock.cli.data import add_data_options, labelled
from parablock.cli.fitting import held_out
from parablock.cli.models import read_for
from parablock.cli.options import Parser, add_common
from parablock.cli.scaling import add_scaling_options

_EXAMPLES = """\
examples:
  parablock certify model.pbk train.svm
  parablock certify house.pbk house.csv --target price --json
  parablock certify model.pbk train.svm --hold-out 0.1

Primal and dual value, duality gap and largest violation of a model, computed anew with kernel values in
float64. DATA must be the file that the model was trained on; another one is refused.
"""


def make_parser() -> Parser:
    parser = Parser(
        "certify",
        "MODEL DATA [options]",
        description="Compute in float64 how good a model is for the data that it was trained on.",
        epilog=_EXAMPLES,
    )
    add = parser.add_argument
    add("model", metavar="MODEL", help="file of 'parablock train'")
    add("data", metavar="DATA", help="file with the training rows; - is standard input")
    add("--hold-out", metavar="SHARE", type=kinds.share, help="without what 'train --early-stopping' held out (0.1)")
    add("--seed", type=kinds.seed, default=0, help="that it drew these with (0)")
    add("--json", action="store_true", help="as JSON")
    add("--jobs", metavar="N", type=kinds.jobs, help="threads; by default all cores")
    add("-m", "--memory-limit", metavar="SIZE", type=kinds.memory, help="for rows and kernel values: 500MB, 2GB")
    add("-q", "--quiet", action="store_true", help="do not tell how far it is")
    add_scaling_options(add_data_options(parser), save=False)
    add_common(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    from parablock import CertificateError
    from parablock.models import load_any

    model = load_any(options.model)
    if not hasattr(model, "certify"):
        raise CertificateError(
            f"{options.model}: {type(model).__name__} cannot be certified, because it does not know which rows it was "
            "trained on; models that 'parablock train' writes to .pbk files do"
        )
    asked = {"n_jobs": options.jobs, "memory_limit": options.memory_limit, "verbose": 0 if options.quiet else 1}
    model.set_params(**{name: value for name, value in asked.items() if value is not None})
    data = read_for(model, options)
    X, y = data.X, labelled(data, options)
    if options.hold_out is not None:
        X, _, y, _ = held_out(model, data, options)
    certificate = model.certify(X, y)
    print(json.dumps(_finite(asdict(certificate)), indent=2) if options.json else certificate)
    return 0


def _finite(value: Any) -> Any:
    """As JSON has it, which knows no infinite numbers."""
    if isinstance(value, dict):
        return {name: _finite(inner) for name, inner in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(inner) for inner in value]
    return None if isinstance(value, float) and abs(value) == float("inf") else value
