"""The examples run and show what they promise, and so does the Python code of the README and of the guide."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

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


def python_blocks(document):
    """The fenced Python code of a Markdown document, each block with its line number."""
    text = (REPOSITORY / document).read_text(encoding="utf-8")
    blocks = re.finditer(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)
    return [(text.count("\n", 0, block.start(1)), block.group(1)) for block in blocks]


def test_quickstart_prints_accuracy_and_certificate():
    printed = output_of("quickstart.py")
    (accuracy,) = numbers_in(printed, r"test accuracy +([\d.]+)%")
    (objective,) = numbers_in(printed, r"dual objective +([\d.]+)")
    (gap,) = numbers_in(printed, r"duality gap +([\d.]+)")
    (support,) = numbers_in(printed, r"support vectors ([\d,]+) of")
    assert accuracy == pytest.approx(82.8, abs=0.5)
    assert support == pytest.approx(6_514, rel=0.01)
    assert 0 <= gap <= 1e-2 * objective


def test_readme_shows_the_quickstart():
    program = (REPOSITORY / "examples" / "quickstart.py").read_text(encoding="utf-8")
    assert python_blocks("README.md")[0][1].strip() in program


def test_own_loss_withstands_outliers():
    printed = output_of("own_loss.py")
    assert "converged" in printed
    (gap,) = numbers_in(printed, r"duality gap (\S+) of the objective")
    (robust,) = numbers_in(printed, r"Huber loss: +([\d.]+)")
    (ridge,) = numbers_in(printed, r"ridge: +([\d.]+)")
    assert 0 <= gap <= 1e-3
    assert robust < 0.05  # the noise itself is 0.1 a row
    assert ridge > 0.5


@pytest.mark.parametrize("document", ["README.md", "docs/guide.md"])
def test_code_in_documents_runs(document, tmp_path, monkeypatch):
    blocks = python_blocks(document)
    assert blocks
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "documentation"}
    for line, code in blocks:
        # Padded to its place, so that an error shows the line of the document; and the name is no file's, so that
        # compiled functions are not cached beside the document.
        exec(compile("\n" * line + code, f"<{document}>", "exec"), namespace)
