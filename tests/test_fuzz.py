"""Changed files of every format are read, or refused in our own words; the program that tries them notices all else."""

import subprocess
import sys

import pytest

from benchmarks.fuzz.formats import FORMATS
from benchmarks.fuzz.running import run

CASES = 2000


@pytest.mark.slow
@pytest.mark.parametrize("format", FORMATS)
def test_changed_files_are_read_or_refused(format):
    outcome = run(format, CASES)
    assert outcome.failures == []
    assert outcome.cases == CASES
    assert outcome.refused > 0.1 * CASES  # the changes do harm


@pytest.mark.slow
@pytest.mark.parametrize(
    ("broken", "what"),
    [
        ("Raises", "KeyError: 'of somebody else' (broken_formats.py:"),
        ("Crashes", "the process ended with status -11"),
        ("Hangs", "it took more than 3 seconds"),
        ("Greedy", "MemoryError: Unable to allocate 8.00 GiB"),
    ],
)
def test_whatever_else_comes_out_is_noticed(broken, what):
    outcome = run(f"tests.broken_formats:{broken}", 6, seconds=3.0)
    assert outcome.cases == 6  # also those behind it, in a new process where the first one is gone
    ((case, told),) = outcome.failures
    assert case == 3
    assert what in told
    assert outcome.accepted + outcome.refused == 5


@pytest.mark.slow
def test_the_program_prints_a_table_and_makes_a_case_again(tmp_path):
    def program(*options):
        return subprocess.run([sys.executable, "-m", "benchmarks.fuzz", *options], capture_output=True, text=True)

    done = program("--cases", "5", "--format", "labels", "scaling")
    assert done.returncode == 0, done.stderr
    assert [line.split()[:2] for line in done.stdout.splitlines()] == [
        ["format", "cases"], ["labels", "5"], ["scaling", "5"],
    ]  # fmt: skip
    contents = set()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        done = program("--format", "labels", "--keep", "7", "--into", str(tmp_path / name))
        contents.add((tmp_path / name / "labels.txt").read_bytes())
    assert len(contents) == 1
