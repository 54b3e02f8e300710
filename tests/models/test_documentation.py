"""The page about model files and the examples of all public names run and show what they promise."""

import doctest
import importlib
import inspect
import pkgutil

import pytest

from parablock import models
from tests.documents import DOCS, blocks

MODULES = [f"parablock.models.{module.name}" for module in pkgutil.iter_modules(models.__path__)]


def test_the_page_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    code = [block for block in blocks(DOCS / "models.md") if block.language == "python"]
    assert len(code) == 12
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "documentation"}
    for block in code:
        exec(compile("\n" * block.line + block.code, "<docs/models.md>", "exec"), namespace)
    printed = capsys.readouterr().out
    assert "KernelSVC {'name': 'RBF', 'gamma': 32.0} [-1, 1]" in printed
    assert "LIBSVM has no Laplacian kernel" in printed
    assert "no kernel machine with the loss Logistic" in printed


@pytest.mark.parametrize("name", ["parablock.models", *MODULES])
def test_examples_in_docstrings_run(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", models.__all__)
def test_every_public_name_says_what_it_is_for(name):
    value = getattr(models, name)
    assert inspect.getdoc(value)
    assert ">>> " in value.__doc__
