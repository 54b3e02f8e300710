"""Files get their name when they are whole, and nothing that lies in their folder can hinder or mislead that."""

import os
import signal
import stat
import subprocess
import sys
import threading

import numpy as np
import pytest
import scipy.sparse as sp

import parablock
from parablock import KernelSVC
from parablock.datasets import open_csr, save_csr
from parablock.replacing import _name as temporary_name
from parablock.replacing import replacing
from tests.privileges import locked_folder

WRITER = """
import sys, time
from parablock.replacing import new_folder, replacing
with {what}(sys.argv[1]) as place:
    place.write(b"half") if hasattr(place, "write") else (place / "data.npy").write_bytes(b"half")
    print("writing", flush=True)
    time.sleep(60)
"""


def inside(folder):
    return sorted(path.name for path in folder.iterdir())


def test_a_file_appears_when_it_is_whole(tmp_path):
    path = tmp_path / "file"
    with replacing(path) as file:
        file.write(b"new")
        assert not path.exists()
        (temporary,) = inside(tmp_path)
    assert inside(tmp_path) == ["file"]
    assert path.read_bytes() == b"new"
    with replacing(path) as file:
        file.write(b"newer")
        assert path.read_bytes() == b"new"
        assert temporary not in inside(tmp_path)  # another name each time
    assert path.read_bytes() == b"newer"


def test_after_an_error_the_earlier_file_is_there_and_nothing_else(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def write_and_fail():
        with replacing(path) as file:
            file.write(b"new")
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        write_and_fail()
    assert inside(tmp_path) == ["file"]
    assert path.read_bytes() == b"old"


def test_a_link_under_the_temporary_name_is_not_followed(tmp_path, monkeypatch):
    """Whoever could guess the name would have his victim overwritten."""
    victim, path = tmp_path / "victim", tmp_path / "file"
    victim.write_bytes(b"precious")
    guessed = temporary_name()
    monkeypatch.setattr("parablock.replacing._name", lambda: guessed)
    (tmp_path / guessed).symlink_to(victim)
    with pytest.raises(FileExistsError) as caught, replacing(path) as file:
        file.write(b"new")
    assert caught.value.filename == str(path)
    assert victim.read_bytes() == b"precious"
    assert not path.exists()


def test_threads_that_save_to_one_path_lose_nothing(tmp_path):
    model = KernelSVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    path, errors = tmp_path / "model.pbk", []

    def save():
        for _ in range(60):
            try:
                model.save(path)
            except BaseException as error:
                errors.append(error)

    threads = [threading.Thread(target=save) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert inside(tmp_path) == ["model.pbk"]
    assert parablock.load(path).predict([[0.0]]) == 0


def test_a_name_as_long_as_the_system_takes(tmp_path):
    name = "m" * 255
    with replacing(tmp_path / name) as file:
        file.write(b"whole")
    assert (tmp_path / name).read_bytes() == b"whole"
    save_csr(tmp_path / ("r" * 255), sp.eye(3, format="csr"))
    assert open_csr(tmp_path / ("r" * 255)).shape == (3, 3)


def test_permissions_are_those_of_the_earlier_file_and_nobody_reads_it_meanwhile(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"secret")
    path.chmod(0o640)
    before = os.umask(0)
    try:
        with replacing(path):
            (temporary,) = [tmp_path / name for name in inside(tmp_path) if name != "file"]
            assert stat.S_IMODE(temporary.stat().st_mode) == 0o640
        with replacing(tmp_path / "new"):
            pass
    finally:
        os.umask(before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o666


@pytest.mark.parametrize("what", ["replacing", "new_folder"])
def test_what_a_killed_writer_left_is_removed_and_a_living_one_is_left_alone(tmp_path, what):
    def start(name):
        writer = subprocess.Popen(
            [sys.executable, "-c", WRITER.format(what=what), str(tmp_path / name)], stdout=subprocess.PIPE
        )
        assert writer.stdout.readline() == b"writing\n"
        return writer

    killed = start("killed")
    (left,) = inside(tmp_path)
    alive = start("alive")
    try:
        os.kill(killed.pid, signal.SIGKILL)
        killed.wait()
        (tmp_path / ".parablock-other.part").write_bytes(b"of somebody else")
        with replacing(tmp_path / "file"):
            pass
        names = inside(tmp_path)
        assert left not in names
        assert {"file", ".parablock-other.part"} < set(names)
        assert len(names) == 3  # and that of the living one
    finally:
        alive.kill()
        alive.wait()
        for writer in (killed, alive):
            writer.stdout.close()


def test_links_and_pipes_with_such_a_name_are_left_alone(tmp_path):
    victim, link, pipe = tmp_path / "victim", tmp_path / temporary_name(), tmp_path / temporary_name()
    victim.write_bytes(b"precious")
    link.symlink_to(victim)
    os.mkfifo(pipe)
    with replacing(tmp_path / "file") as file:
        file.write(b"whole")
    assert victim.read_bytes() == b"precious"
    assert link.is_symlink()
    assert pipe.exists()


def test_errors_name_the_file_of_the_user(tmp_path):
    model = KernelSVC(gamma=1.0).fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    with pytest.raises(FileNotFoundError) as caught:
        model.save(tmp_path / "nowhere" / "model.pbk")
    assert caught.value.filename == str(tmp_path / "nowhere" / "model.pbk")
    assert str(caught.value).endswith(f"No such file or directory: '{tmp_path}/nowhere/model.pbk'")
    with pytest.raises(OSError, match="File name too long") as caught, replacing(tmp_path / ("m" * 256)):
        pass
    assert caught.value.filename == str(tmp_path / ("m" * 256))
    with pytest.raises(OSError, match="No space left") as caught, replacing(tmp_path / "file"):
        raise OSError(28, "No space left on device")
    assert caught.value.filename == str(tmp_path / "file")
    with pytest.raises(OSError, match="something else"), replacing(tmp_path / "file"):
        raise OSError("something else")
    with pytest.raises(FileExistsError, match="is there already"):
        save_csr(tmp_path, sp.csr_matrix(np.eye(2)))


def test_a_folder_that_cannot_be_written_to():
    with locked_folder() as folder, pytest.raises(PermissionError) as caught, replacing(folder / "file"):
        pass
    assert caught.value.filename == str(folder / "file")
