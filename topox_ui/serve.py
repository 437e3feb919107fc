"""Serve the workbench as the owner's limits say: ``python -m topox_ui.serve``; docs/serving.md has the variables."""

import os
import sys
from pathlib import Path

from topox_core.errors import InputError
from topox_ui.runs.limits import ServerLimits, only_this_machine, server_limits

HERE = Path(__file__).resolve().parent
# In a checkout the pages lie at its top; installed, where nobody else's app.py can be.
APP = next(
    path for path in (HERE / "workbench" / "app.py", HERE.parent / "app.py") if path.exists()
)
BAD_INPUT = 2


def command(limits: ServerLimits) -> list[str]:
    """Return the command that serves the app."""
    return [
        *(sys.executable, "-m", "streamlit", "run", str(APP)),
        *("--server.address", limits.address),
        *("--server.port", str(limits.port)),
        *(word for name in limits.allowed_hosts for word in ("--server.allowedHosts", name)),
    ]


def announcement(limits: ServerLimits) -> str:
    """Return in a line or two what is served, and to whom."""
    line = (
        f"Serving on {limits.address}, port {limits.port}: {limits.solver_places} solver places, "
        f"at most {limits.longest_s:g} s a solve, {limits.most_tasks:,} tasks a graph, "
        f"{limits.session_mb:,} MB of results a session. "
        + ("Runs are kept in one library for all." if limits.keeps_runs else "No run is kept.")
    )
    if not only_this_machine(limits.address):
        line += (
            "\nWhoever reaches this address can use it: there is no password and no encryption. "
            "docs/serving.md says what to put in front."
        )
    return line


def main() -> None:
    """Check the limits, say them, and become the server; exit with 2 if one of them is wrong."""
    try:
        limits = server_limits()
    except InputError as error:
        sys.stderr.write(f"{error}\n")
        raise SystemExit(BAD_INPUT) from None
    sys.stdout.write(announcement(limits) + "\n")
    sys.stdout.flush()
    os.chdir(APP.parent)  # Streamlit's own settings lie there
    arguments = command(limits)
    os.execv(arguments[0], arguments)


if __name__ == "__main__":
    main()
