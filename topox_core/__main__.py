"""``python -m topox_core``: the command line."""

from __future__ import annotations

import sys

from topox_core.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
