"""``python -m parablock`` is the command `parablock`."""

import sys

from parablock.cli import main

if __name__ == "__main__":
    sys.exit(main())
