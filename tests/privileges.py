"""A folder that nobody may write to, also where the tests run as root, to whom nothing is forbidden."""

import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

_NOBODY = 65534


@contextmanager
def locked_folder():
    """While this lasts a process of root's has the rights of a user without any."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o555)
        root = os.geteuid() == 0
        try:
            if root:
                os.seteuid(_NOBODY)
            yield Path(folder)
        finally:
            if root:
                os.seteuid(0)
            os.chmod(folder, 0o755)
