"""Our command in a process whose compiled code is loaded: ``python -m benchmarks.side_by_side.warm_command ARGUMENTS``.

That is what the workbench and a second command line in one session are; a fresh process needs half
a second more.
"""

from __future__ import annotations

import sys

from topox_core.cli.main import main
from topox_core.schedule.engines.waiting_workers import LOADED, wait_until_loaded
from topox_core.schedule.race.proof import LOADING_S
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve
from topox_core.warm_up import warm_up
from topox_core.workloads.samples import load_sample


def load_code() -> None:
    """Call every kernel once, on inputs that have nothing to do with the instance, and load the engines."""
    warm_up()
    solve(*load_sample("patience"), Settings.of(circuits="per-slot", tick="slot", time_limit_s=0.5))
    for engine in LOADED:
        wait_until_loaded(engine, LOADING_S)


if __name__ == "__main__":
    load_code()
    sys.exit(main(sys.argv[1:]))
