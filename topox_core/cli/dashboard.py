"""``dashboard``: serve the workbench's pages on this machine and open them in a browser."""

import importlib.util
import os
import socket
import subprocess
import sys
import time
from contextlib import closing, suppress

from topox_core.cli.shared.command import Arguments, command
from topox_core.cli.shared.options import Option, reader
from topox_core.cli.shared.printing import note
from topox_core.errors import InputError, refuse_if

HERE, USUAL_PORT, LAST_PORT = "127.0.0.1", 8501, 65_535
# How many ports after the usual one are tried, and how long a server may take until it answers.
PORTS_TRIED, START_S, POLL_S = 50, 120.0, 0.1


@command(
    "Serve the pages of the workbench on this machine, to nobody else, and open them in a browser. Ctrl+C ends it.",
    Option(
        "--port N",
        reader(
            int,
            "a whole number",
            lambda port: 0 < port <= LAST_PORT,
            f"at least 1 and at most {LAST_PORT}",
        ),
        f"port (default {USUAL_PORT}, or the next one that is free)",
    ),
    Option("--no-browser", bool, "only say the address"),
)
def run(options: Arguments) -> int:
    """Start the server, open the browser once it answers, and wait until the server ends."""
    refuse_if(
        (
            importlib.util.find_spec("topox_ui") is None,
            "is not installed here: pip install topox-workbench",
        ),
        file="topox_ui",
    )
    port = _port(options.port)
    where = {"TOPOX_ADDRESS": HERE, "TOPOX_PORT": str(port)}
    server = subprocess.Popen([sys.executable, "-m", "topox_ui.serve"], env={**os.environ, **where})
    address = f"http://{HERE}:{port}"
    try:
        if _answers(server, address):
            note(f"The workbench is on {address} (Ctrl+C ends it)")
            if not options.no_browser and not _opened(address):
                note(f"No browser was found: open {address} in one")
        return server.wait()
    except KeyboardInterrupt:
        server.terminate()
        server.wait()
        return 0


def _port(wanted: int | None) -> int:
    """Return a port that nobody listens on.

    Raises
    ------
    InputError
        If the port that is wanted is taken or is none, or no other is free.
    """
    if wanted is not None:
        refuse_if(
            (not _free(wanted), f"{wanted} is taken: leave it out, or name another"),
            file="command line",
            field="--port",
        )
        return wanted
    for port in range(USUAL_PORT, USUAL_PORT + PORTS_TRIED):
        if _free(port):
            return port
    last = USUAL_PORT + PORTS_TRIED - 1
    problem = f"{USUAL_PORT} to {last} are all taken: name another"
    raise InputError(problem, file="command line", field="--port")


def _free(port: int) -> bool:
    with closing(socket.socket()) as one:
        if os.name != "nt":  # a server that has just ended keeps nobody out
            one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            one.bind((HERE, port))
        except OSError:
            return False
    return True


def _answers(server: subprocess.Popen[bytes], address: str) -> bool:
    """Wait until a server answers; False where it has ended or takes too long."""
    from urllib.request import urlopen

    end = time.monotonic() + START_S
    while server.poll() is None and time.monotonic() < end:
        with suppress(OSError), urlopen(f"{address}/_stcore/health", timeout=5):
            return True
        time.sleep(POLL_S)
    return False


def _opened(address: str) -> bool:
    """Whether a browser was told to open an address."""
    import webbrowser

    with suppress(webbrowser.Error):
        return webbrowser.open(address)
    return False
