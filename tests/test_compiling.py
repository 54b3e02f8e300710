"""Whatever happens to the cache of compiled functions costs a compilation and one warning, and never a fit."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import parablock
from tests.monitor.test_checkpoint import mounting_is_allowed

SUM = """
import numpy as np
from parablock.losses import Hinge
from parablock.problem import Problem
problem = Problem.build(Hinge(), np.ones(20), np.ones(20), False)
print(problem.dual_sum(0, np.ones(20)), Hinge().dual_of_rows.cache_hits)
"""
SMALL_FILES = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))"
COMPILED, LOADED = ["-20.0", "0"], ["-20.0", "1"]


def run(cache, program=SUM, *before):
    """What the program printed, and its lines on standard error."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache)}
    command = [*before, sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr.splitlines()


@pytest.fixture(scope="module")
def full_cache(tmp_path_factory):
    cache = tmp_path_factory.mktemp("cache")
    assert run(cache)[0] == COMPILED
    return cache


@pytest.fixture
def cache(full_cache, tmp_path):
    """One that a process has filled, to damage."""
    return Path(shutil.copytree(full_cache, tmp_path / "cache"))


def test_a_full_cache_compiles_nothing_and_says_nothing(cache):
    assert run(cache) == (LOADED, [])


def emptied(content):
    return b""


def truncated(content):
    return content[: len(content) // 2]


def garbled(content):
    """It may still be a valid pickle of something."""
    middle = len(content) // 2
    return content[:middle] + bytes(byte ^ 0x10 for byte in content[middle : middle + 8]) + content[middle + 8 :]


def of_something_else(content):
    return b"\x80\x04K\x01."


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
def test_damaged_files_cost_a_compilation_and_one_warning_and_are_replaced(cache, suffix):
    files, damages = sorted(cache.rglob(f"*{suffix}")), [emptied, truncated, garbled, of_something_else]
    assert len(files) >= len(damages)
    for number, file in enumerate(files):
        file.write_bytes(damages[number % len(damages)](file.read_bytes()))
    printed, said = run(cache)
    assert printed == COMPILED
    (line,) = [line for line in said if "damaged" in line]
    assert re.search(r"delete the files \*\.nbi and \*\.nbc", line)
    assert str(cache) in line
    assert not any("kept" in line for line in said)
    assert run(cache) == (LOADED, [])


def test_what_cannot_be_kept_is_compiled_and_said_once(tmp_path):
    pytest.importorskip("resource", reason="this system does not limit files")
    printed, said = run(tmp_path, SMALL_FILES + SUM)
    assert printed == COMPILED
    (line,) = [line for line in said if "could not be kept" in line]
    assert "File too large" in line
    assert "Make room" in line
    assert run(tmp_path)[0] == COMPILED  # nothing half-written is taken for whole
    assert run(tmp_path) == (LOADED, [])


@pytest.mark.skipif(not mounting_is_allowed(), reason="this system does not let tests mount a small file system")
@pytest.mark.parametrize("size", ["20k", "60k"])
def test_a_disk_that_is_really_full(tmp_path, size):
    mount = f'mount -t tmpfs -o size={size} none "{tmp_path}" && exec "$@"'
    printed, said = run(tmp_path, SUM, "unshare", "-rm", "sh", "-c", mount, "sh")
    assert printed == COMPILED
    (line,) = [line for line in said if "could not be kept" in line]
    assert "No space left on device" in line


def test_without_any_folder_for_the_cache(tmp_path):
    """As in a container whose disk may not be written to."""
    nowhere = tmp_path / "file"
    nowhere.touch()
    forbidden = """
import tempfile
def refuse(*arguments, **more):
    raise OSError(30, "Read-only file system")
tempfile.TemporaryFile = refuse
"""
    printed, said = run(nowhere / "cache", forbidden + SUM)
    assert printed == COMPILED
    (line,) = [line for line in said if "no folder" in line]
    assert "Set NUMBA_CACHE_DIR" in line


def test_every_compiled_function_is_kept_like_this():
    package = Path(parablock.__file__).parent
    users = [
        path
        for path in package.rglob("*.py")
        if re.search(r"^from numba import .*\b(njit|cfunc)\b", path.read_text(), re.M)
    ]
    assert users == []
