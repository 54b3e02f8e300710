"""The command `parablock`: train, predict and look at models from a shell.

One module a command, each with ``make_parser()`` and ``run(options)``, which returns the exit status. `main` finds the
command and turns whatever happens into a line on standard error and an exit status.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib import import_module

from parablock.cli.failures import UsageError, guarded
from parablock.cli.ranks import asks_for_mpi, muted_unless_first

COMMANDS = {
    "train": "train a model on a data file",
    "predict": "predict the rows of a data file with a model",
    "certify": "compute in float64 how good a model is",
    "info": "tell what is in a model file",
    "convert": "write a model or a data file in another format",
    "plan": "forecast memory, communication and time of a fit",
    "report": "make a web page of the log of a fit",
    "warm-up": "compile once what all later commands and fits need",
    "demo": "train on bundled data beside scikit-learn",
}

_HELP = """\
usage: parablock COMMAND ...

Exact kernel machines (support vector machines, kernel logistic, ridge and quantile regression) on all
cores, a GPU or a cluster.

commands:
{commands}

'parablock COMMAND --help' lists the options of a command, 'parablock --version' tells the version.

examples:
  parablock train flowers.csv --target species -o flowers.pbk
  parablock train covtype.svm -o model.pbk -c 32 -g 32 --device cuda
  parablock predict model.pbk test.svm -o out.txt
  mpiexec -n 8 parablock train covtype.svm -o model.pbk --engine mpi

data files:
  LIBSVM's text (also .gz, .bz2, .xz), .csv and .parquet with --target, .npy, .npz; - is standard input

exit status:
  0 done, 1 failed, 2 wrong usage, 130 interrupted by Ctrl-C, 143 terminated; errors are one line on
  standard error, and leave no half-written file
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Parameters
    ----------
    arguments : sequence of str, optional
        Those of the process by default.

    Returns
    -------
    int
        The exit status.

    Examples
    --------
    >>> from parablock.cli import main
    >>> main(["plan", "--rows", "1000", "--features", "10"])  # doctest: +ELLIPSIS
    ranks x threads    1 x 16
    rows x features    1,000 x 10
    ...
    0
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    with muted_unless_first(given):
        return guarded(lambda: _run(given), show_traceback="--traceback" in given, ranks=asks_for_mpi(given))


def module_of(command: str) -> str:
    """Where a command is implemented."""
    return f"parablock.cli.{command.replace('-', '_')}"


def _run(arguments: list[str]) -> int:
    command, rest = (arguments[0], arguments[1:]) if arguments else ("--help", [])
    if command in ("-h", "--help", "help"):
        width = max(map(len, COMMANDS))
        print(_HELP.format(commands="\n".join(f"  {name:<{width}}  {what}" for name, what in COMMANDS.items())), end="")
        return 0
    if command in ("-V", "--version"):
        from parablock import __version__

        print(f"parablock {__version__}")
        return 0
    if command not in COMMANDS:
        near = get_close_matches(command, COMMANDS, n=1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(COMMANDS)}"
        raise UsageError(f"{command!r} is no command; {hint}")
    module = import_module(module_of(command))
    status: int = module.run(module.make_parser().parse_args(rest))
    return status
