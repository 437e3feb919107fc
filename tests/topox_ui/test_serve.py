"""The command that serves the workbench."""

import os
import subprocess
import sys
from itertools import pairwise

import pytest

from tests.real_inputs import ROOT
from topox_ui.runs.limits import ServerLimits
from topox_ui.serve import announcement, command
from topox_ui.shell.page import from_elsewhere


def test_the_server_listens_where_its_owner_says() -> None:
    arguments = command(ServerLimits.of({"TOPOX_ADDRESS": "10.0.0.7", "TOPOX_PORT": "9000"}))
    assert arguments[arguments.index("--server.address") + 1] == "10.0.0.7"
    assert arguments[arguments.index("--server.port") + 1] == "9000"


@pytest.mark.parametrize(
    ("environment", "hosts"),
    [
        ({}, ["127.0.0.1", "localhost", "::1"]),
        ({"TOPOX_ADDRESS": "0.0.0.0"}, []),
        ({"TOPOX_HOSTS": "a.example,b.example"}, ["a.example", "b.example"]),
        ({"TOPOX_ADDRESS": "10.0.0.7", "TOPOX_HOSTS": "a.example"}, ["a.example"]),
    ],
)
def test_a_server_that_only_this_machine_reaches_answers_to_its_names_alone(environment, hosts):
    arguments = command(ServerLimits.of(environment))
    given = [value for word, value in pairwise(arguments) if word == "--server.allowedHosts"]
    assert given == hosts


@pytest.mark.parametrize(
    ("origin", "host", "refused"),
    [
        ("http://localhost:8501", "localhost:8501", False),
        ("http://127.0.0.1:3000", "localhost:8501", True),
        ("http://localhost:9999", "127.0.0.1:8501", True),
        ("http://[::1]:8501", "[::1]:8501", False),
        ("https://topox.example.org", "topox.example.org", False),
        ("http://localhost:8080", "localhost", False),  # a proxy that leaves the port out
        ("http://localhost:x", "localhost:8501", True),
        (None, "localhost:8501", False),
        (None, None, False),
    ],
)
def test_a_page_of_another_program_on_this_machine_is_not_answered(origin, host, refused):
    assert from_elsewhere(origin, host) is refused


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
