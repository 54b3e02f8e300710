"""`parablock convert`."""

from __future__ import annotations

import argparse
from dataclasses import replace

from parablock.cli import options as kinds
from parablock.cli.data import add_data_options, read, stored
from parablock.cli.failures import UsageError, say
from parablock.cli.models import looks_like_model, model_format, write_model
from parablock.cli.options import Parser, add_common
from parablock.cli.paths import refuse_overwriting
from parablock.cli.scaling import add_scaling_options, names_of_scaling, scaled
from parablock.datasets import write_data
from parablock.datasets.reading import format_of
from parablock.datasets.writing import WRITTEN

_EXAMPLES = """\
examples:
  parablock convert model.pbk heart.model          a model for LIBSVM's svm-predict
  parablock convert model.pbk model.onnx           a model for ONNX
  parablock convert covtype.svm.bz2 covtype.npz    data, here from text to a CSR matrix with labels
  parablock convert house.csv house.svm --target price
  parablock convert flowers.csv flowers.npz --target species
  parablock convert covtype.svm X.npy --labels-out y.npy
  parablock convert train.svm train.npz --save-scaling scaling.json
  parablock convert test.svm test.npz --use-scaling scaling.json

Models are written as .pbk, .model (LIBSVM's text) or .onnx; data as LIBSVM's text (also .gz, .bz2,
.xz), .npz or .npy.
"""


def make_parser() -> Parser:
    parser = Parser(
        "convert", "FROM TO [options]", description="Write a model or a data file in another format.", epilog=_EXAMPLES
    )
    parser.add_argument("data", metavar="FROM", help="file to read; - is standard input")
    parser.add_argument("output", metavar="TO", type=kinds.output, help="file to write; its ending says how")
    parser.add_argument("--to", choices=WRITTEN, help="format of the data to write, whatever its name's ending")
    parser.add_argument("--labels-out", metavar="FILE", type=kinds.output, help="file for labels, beside .npy")
    parser.add_argument("--features", metavar="N", type=kinds.whole, help="how many; text may lack the last ones")
    parser.add_argument("-q", "--quiet", action="store_true", help="say nothing but errors")
    add_scaling_options(add_data_options(parser))
    add_common(parser)
    return parser


def run(options: argparse.Namespace) -> int:
    refuse_overwriting(
        {"FROM": options.data, "--labels": options.labels, "--use-scaling": options.use_scaling},
        {"TO": options.output, "--labels-out": options.labels_out, "--save-scaling": options.save_scaling},
    )
    if looks_like_model(options.data):
        from parablock.models import load_any

        for name in ("to", "save_scaling", "use_scaling", "labels_out", "features"):
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} is for data, and {options.data} is a model")
        format = model_format(options.output)
        write_model(load_any(options.data), options.output, format)
        what = "the model"
    else:
        data = read(options, n_features=options.features, names=names_of_scaling(options))
        if options.save_scaling is not None:
            data = replace(data, X=stored(data.X, "auto", None))
        data = scaled(data, options)
        format = options.to or format_of(options.output)
        write_data(options.output, data, format=format, labels=options.labels_out, zero_based=False)
        what = f"{data.X.shape[0]:,} rows x {data.X.shape[1]:,} features"
    if not options.quiet:
        say(f"wrote {what} to {options.output} as {format}")
    return 0
