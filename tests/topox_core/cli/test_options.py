"""What a field of a record says is what its option says, and the options make the record."""

import argparse
from dataclasses import dataclass
from typing import Annotated

import pytest

from topox_core.cli.shared.options import Option, of_options, options_of
from topox_core.economics.comparison import Running
from topox_core.economics.networks import Counting
from topox_core.rails.iteration import Rail
from topox_core.schema.fields import setting
from topox_core.strategy.search.moves import SearchSettings
from topox_core.tdm.model.jobs import Reading, TdmSettings


@dataclass(frozen=True)
class Fan:
    """A record of every kind of field."""

    blades: Annotated[int, setting("Blades", "", "blades of the fan")]
    speed: Annotated[float, setting("Speed", "rpm")] = 50.0
    duty: Annotated[float, setting("Duty", "", "share of 100 % in use")] = 0.5
    mode: Annotated[str, setting("Mode", choices=("pull", "push"))] = "pull"
    quiet: Annotated[bool, setting("Quiet")] = False
    name: Annotated[str, setting("Name")] = ""
    limit: Annotated[float | None, setting("Limit", "W", "no more than this")] = None


def parsed(rows: tuple[Option, ...], words: str) -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    for row in rows:
        row.add_to(parser)
    parser.format_help()  # a per cent sign in words must not break it
    return parser.parse_args(words.split())


def test_options_make_the_record_whose_fields_they_are() -> None:
    words = "--blades 3 --speed 1e2 --mode push --quiet yes --name a --limit 7"
    made = of_options(Fan, parsed(options_of(Fan), words), duty=0.25)
    assert made == Fan(3, 100.0, 0.25, "push", True, "a", 7.0)
    assert of_options(Fan, parsed(options_of(Fan, switches=True), "--blades 3 --quiet")).quiet


@pytest.mark.parametrize("record", [Running, Counting, Rail, SearchSettings, TdmSettings, Reading])
def test_what_is_left_out_has_the_default_of_its_field(record: type) -> None:
    names = [name for name in record.__dataclass_fields__ if name != "reading"]
    for switches in (True, False):
        given = parsed(options_of(record, *names, switches=switches), "")
        assert of_options(record, given) == record()


def test_help_says_the_field_s_words_its_default_and_its_unit() -> None:
    told = {row.field: row.help for row in options_of(Fan, usual={"blades": 4})}
    assert told == {
        "blades": "blades of the fan (default 4)",
        "speed": "speed (default 50 rpm)",
        "duty": "share of 100 %% in use (default 0.5)",
        "mode": "mode (default pull)",
        "quiet": "quiet",
        "name": "name",
        "limit": "no more than this (W)",
    }
    (changed,) = options_of(Fan, "speed", prefix="fan_")
    assert (changed.help, changed.key, changed.field) == ("speed (rpm)", "fan_speed", "speed")


def test_an_option_of_another_name_sets_its_field() -> None:
    rows = options_of(Fan, "speed", "mode", written={"speed": "--rpm", "mode": ("--way W", str)})
    given = parsed(rows, "--rpm 9 --way push")
    assert (given.speed, given.mode) == (9.0, "push")
    assert [row.spoken for row in rows] == ["--rpm", "--way"]
