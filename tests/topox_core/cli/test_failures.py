"""``failures`` and ``rails bytes`` on the command line."""

from __future__ import annotations

import json

import pytest

from topox_core.cli.failures import failure_of
from topox_core.cli.main import main
from topox_core.errors import InputError
from topox_core.fabrics.compare import compare, default_options
from topox_core.fabrics.failures import FixedCircuits, after_failure
from topox_core.fabrics.run import JobRequest
from topox_core.rails.byte_classes import byte_classes
from topox_core.rails.presets import PRESETS
from topox_core.schedule.settings import Settings
from topox_core.topology.failures import Failure
from topox_core.workloads.samples import load_sample

RACE = ("sample_data/race.taskgraph.json", "sample_data/race.cluster.json")


def test_every_kind_is_read() -> None:
    assert failure_of("fibre:0-3") == Failure.fibre(0, 3)
    assert failure_of("port:2-1") == Failure.of_port(2, 1)
    assert failure_of("switch:1") == Failure.of_switch(1)
    assert failure_of("server:4-9") == Failure.of_server(4, 9)


@pytest.mark.parametrize(
    "text", ["switch", "switch:1-2", "fibre:1", "cable:1", "port:a-b", "server:-1-2"]
)
def test_what_is_written_otherwise_is_one_line(text: str) -> None:
    with pytest.raises(InputError, match="--fail: must be fibre:A-B") as error:
        failure_of(text)
    assert "\n" not in str(error.value)


def test_command_and_core_give_one_number(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["failures", *RACE, "--fail", "server:1-2", "--at-percent", "30", "--json"]
    assert main(words) == 0
    found = json.loads(capsys.readouterr().out)["server:1-2"]
    graph, cluster = load_sample("race")
    settings, options = Settings.of(engine="list"), default_options(cluster)
    runs = compare(graph, cluster, settings, ("static", "scheduled"), options)
    job = JobRequest(graph, cluster, settings, options, runs)
    expected = after_failure(job, FixedCircuits.of(job), Failure.of_server(1, 2), 0.3)
    assert [one["after_ms"] for one in found] == [one.after_ms for one in expected]
    assert [one["label"] for one in found] == [one.label for one in expected]


def test_a_failure_that_nothing_survives_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["failures", *RACE, "--fail", "switch:0"]) == 1
    assert "no switch would be left" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ((), "--fail: is needed"),
        (
            ("--fail", "switch:0", "--at-percent", "100"),
            "--at-percent: must be from 0 to below 100",
        ),
        (("--fail", "hub:0"), "--fail: must be fibre"),
    ],
)
def test_wrong_options_are_refused(
    capsys: pytest.CaptureFixture[str], words: tuple[str, ...], line: str
) -> None:
    assert main(["failures", *RACE, *words]) == 2
    assert line in capsys.readouterr().err


def test_bytes_are_the_classes_of_the_formula(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rails", "bytes", "llama3-8b-perlmutter", "--json"]) == 0
    stages = json.loads(capsys.readouterr().out)["stages"]
    preset = PRESETS["llama3-8b-perlmutter"]
    for stage in range(preset.pipeline):
        expected = [one.counted_bytes for one in byte_classes(preset, stage)]
        assert [one["counted_bytes"] for one in stages[str(stage)]] == expected
    assert main(["rails", "bytes", "llama3-8b-perlmutter", "--stage", "0"]) == 0
    assert "3,829.12" in capsys.readouterr().out
    assert main(["rails", "bytes", "llama3-8b-perlmutter", "--stage", "2"]) == 2
    assert "--stage: must be from 0 to 1" in capsys.readouterr().err
