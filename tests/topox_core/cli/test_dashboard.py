"""``topox dashboard``: it serves the pages on this machine, says where, and takes no port that is taken."""

import os
import signal
import socket
import subprocess
import sys
import urllib.request
from contextlib import closing
from functools import partial

import pytest

from tests.patience import PATIENCE_S, wait_until
from tests.real_inputs import ROOT
from topox_core.cli import dashboard
from topox_core.errors import InputError


def test_it_answers_from_any_folder_until_it_is_interrupted(tmp_path):
    with closing(socket.socket()) as free:
        free.bind((dashboard.HERE, 0))
        port = free.getsockname()[1]
    log = tmp_path / "said"
    with log.open("wb") as said:
        process = subprocess.Popen(
            [
                *(sys.executable, "-m", "topox_core"),
                "dashboard",
                "--no-browser",
                "--port",
                str(port),
            ],
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT), "TOPOX_RUN_LIBRARY": "no"},
            stdout=said,
            stderr=subprocess.STDOUT,
            # Tests that run in the background are deaf to an interrupt, and so would this be.
            preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),
        )
    address = f"http://{dashboard.HERE}:{port}"
    wait_until(lambda: f"The workbench is on {address}" in log.read_text())
    assert urllib.request.urlopen(address, timeout=10).status == 200
    process.send_signal(signal.SIGINT)
    assert process.wait(PATIENCE_S) == 0
    assert "Traceback" not in log.read_text() and not dashboard._answers_now(address)


def test_a_port_that_is_taken_is_passed_over_or_refused_where_it_was_named(monkeypatch):
    with closing(socket.socket()) as taken:
        taken.bind((dashboard.HERE, 0))
        taken.listen()
        port = taken.getsockname()[1]
        monkeypatch.setattr(dashboard, "USUAL_PORT", port)
        assert dashboard._port(None) > port
        with pytest.raises(InputError, match=rf"--port: {port} is taken"):
            dashboard._port(port)
        monkeypatch.setattr(dashboard, "PORTS_TRIED", 1)
        with pytest.raises(InputError, match="are all taken"):
            dashboard._port(None)


def test_without_pages_and_without_a_browser_one_line_says_what_to_do(monkeypatch, capsys):
    monkeypatch.setattr("importlib.util.find_spec", lambda _name: None)
    with pytest.raises(InputError, match="pip install topox-workbench"):
        dashboard.run.run(None)
    monkeypatch.setattr("webbrowser.open", lambda _address: False)
    assert not dashboard._opened("http://127.0.0.1:1")
