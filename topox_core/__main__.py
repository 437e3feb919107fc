"""``python -m topox_core``: the command line."""

import sys

from topox_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
