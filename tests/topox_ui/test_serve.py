"""The command that serves the workbench."""

import os
import subprocess
import sys

from tests.real_inputs import ROOT
from topox_ui.runs.limits import ServerLimits
from topox_ui.serve import announcement, command


def test_the_server_listens_where_its_owner_says() -> None:
    arguments = command(ServerLimits.of({"TOPOX_ADDRESS": "10.0.0.7", "TOPOX_PORT": "9000"}))
    assert arguments[arguments.index("--server.address") + 1] == "10.0.0.7"
    assert arguments[arguments.index("--server.port") + 1] == "9000"


def test_who_opens_it_to_others_is_told_that_there_is_no_password() -> None:
    assert "no password" not in announcement(ServerLimits())
    for address in ("0.0.0.0", "::", "10.0.0.7", "class.example"):
        assert "no password" in announcement(ServerLimits(address=address))


def test_a_wrong_limit_ends_the_command_with_one_line() -> None:
    run = subprocess.run(
        [sys.executable, "-m", "topox_ui.serve"],
        cwd=ROOT,
        env={**os.environ, "TOPOX_PORT": "http"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 2
    assert run.stderr.splitlines() == [
        "environment, field TOPOX_PORT: must be a whole number from 1 to 65,535 (got 'http')"
    ]
