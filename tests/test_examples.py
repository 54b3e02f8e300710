"""The examples run and show what they promise."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow  # starts processes

REPOSITORY = Path(__file__).resolve().parents[1]


def output_of(example):
    """What a program in examples/ prints, run as a user runs it."""
    command = [sys.executable, str(REPOSITORY / "examples" / example)]
    # A ConvergenceWarning, which is a UserWarning, would mean that an example does not show what it says.
    environment = {**os.environ, "PYTHONWARNINGS": "error::UserWarning"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def numbers_in(text, pattern):
    found = re.search(pattern, text)
    assert found, f"{pattern!r} is not in:\n{text}"
    return [float(number.replace(",", "")) for number in found.groups()]


def test_quickstart_prints_accuracy_and_certificate():
    printed = output_of("quickstart.py")
    (accuracy,) = numbers_in(printed, r"test accuracy +([\d.]+)%")
    (objective,) = numbers_in(printed, r"dual objective +([\d.]+)")
    (gap,) = numbers_in(printed, r"duality gap +([\d.]+)")
    (support,) = numbers_in(printed, r"support vectors ([\d,]+) of")
    assert accuracy == pytest.approx(82.8, abs=0.5)
    assert support == pytest.approx(6_514, rel=0.01)
    assert 0 <= gap <= 1e-2 * objective


def test_own_loss_withstands_outliers():
    printed = output_of("own_loss.py")
    assert "converged" in printed
    (gap,) = numbers_in(printed, r"duality gap (\S+) of the objective")
    (robust,) = numbers_in(printed, r"Huber loss: +([\d.]+)")
    (ridge,) = numbers_in(printed, r"ridge: +([\d.]+)")
    assert 0 <= gap <= 1e-3
    assert robust < 0.05  # the noise itself is 0.1 a row
    assert ridge > 0.5


def test_a_table_is_predicted_with_what_that_is_worth():
    pytest.importorskip("pandas")
    printed = output_of("table.py")
    score, expected = numbers_in(printed, r"R squared +([\d.]+), expected ([\d.]+)")
    (inside,) = numbers_in(printed, r"([\d.]+)% inside")
    assert score > 0.4
    assert abs(score - expected) < 0.2
    assert 70 <= inside <= 92
    assert {"s5", "bmi"} <= set(printed.split())
