"""A setting is said once, on its field: what checks it, what an error says, what options and files are called."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest

from tests.refusal import refusal
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task
from topox_core.schedule.settings import Settings
from topox_core.schema.fields import PRINTABLE, expected, fields_of, setting
from topox_core.schema.records import check_fields, from_values, wrong_fields


@dataclass(frozen=True)
class Band:
    """A record within a record."""

    option: Annotated[str, setting(key="is")]
    below: Annotated[float, setting(ge=0)] | None = None


@dataclass(frozen=True)
class Example:
    """Every kind of field."""

    count: Annotated[int, setting("Count", "", "how many", ge=1, le=9)]
    speed: Annotated[
        float, setting("Speed", "Gbit/s", "how fast", gt=0, le=100, steps=(10, 40))
    ] = 1.0
    word: Literal["a", "b"] = "a"
    tick: Annotated[str, setting(choices=("auto",))] | Annotated[float, setting(gt=0)] = "auto"
    free: tuple[Annotated[str, setting(choices=("x", "y"))], ...] = ()
    name: Annotated[str, setting(min_length=1, max_length=5, without=PRINTABLE)] = "n"
    code: Annotated[str, setting(pattern="^[A-Z][0-9]$", like="a letter and a digit")] = "A1"
    yes: bool = False
    bands: Annotated[tuple[Band, ...], setting(max_length=2)] = ()
    more: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        check_fields(self, "settings")


def test_a_field_knows_its_words_its_range_and_what_it_may_be() -> None:
    speed, count = fields_of(Example)["speed"], fields_of(Example)["count"]
    assert (speed.title, speed.unit, speed.steps) == ("Speed", "Gbit/s", (10, 40))
    assert (speed.help, speed.kind, speed.default) == ("how fast (Gbit/s)", float, 1.0)
    assert count.required and not speed.required
    assert fields_of(Example)["word"].choices == ("a", "b")
    assert fields_of(Band)["option"].key == "is" and fields_of(Band)["below"].key == "below"


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ({"count": 0}, "count: must be from 1 to 9 (got 0)"),
        ({"count": 2.0}, "count: must be a whole number without a decimal point (got 2.0)"),
        ({"count": True}, "count: must be a whole number (got True)"),
        ({"speed": 0}, "speed: must be greater than 0 (got 0)"),
        ({"speed": 101}, "speed: must be at most 100 (got 101)"),
        ({"speed": "1"}, "speed: must be a number (got '1')"),
        ({"speed": math.nan}, "speed: must be a finite number (got nan)"),
        ({"speed": 10**400}, "speed: must be a number (got a number of more than 60 digits)"),
        ({"word": "c"}, "word: must be one of a, b (got 'c')"),
        ({"tick": "soon"}, "tick: must be auto or a number above 0 (got 'soon')"),
        ({"tick": -1}, "tick: must be auto or a number above 0 (got -1)"),
        ({"free": ("x", "z")}, "free[1]: must be one of x, y (got 'z')"),
        ({"name": "a\nb"}, r"name: must be printable text of 1 to 5 characters (got 'a\nb')"),
        ({"name": " "}, "name: must be printable text of 1 to 5 characters (got ' ')"),
        ({"code": "12"}, "code: must be a letter and a digit (got '12')"),
        ({"yes": 1}, "yes: must be true or false (got 1)"),
        ({"more": []}, "more: must be an object in braces (got a list of 0 entries)"),
    ],
)
def test_what_is_out_of_range_is_said_by_field_made_here_or_in_a_file(
    values: dict[str, Any], line: str
) -> None:
    assert refusal(Example, **{"count": 1, **values}) == f"settings, field {line}"
    assert (
        refusal(from_values, Example, {"count": 1, **values}, "x.json", "item 3")
        == f"x.json, item 3, field {line}"
    )


@pytest.mark.parametrize(
    ("values", "line"),
    [
        ([], ": must be an object in braces (got a list of 0 entries)"),
        ({}, ", field count: is missing"),
        ({"count": 1, "sped": 2}, ", field sped: unknown key (did you mean 'speed'?)"),
        ({"count": 1, "free": "x"}, ", field free: must be a list in brackets (got 'x')"),
        ({"count": 1, "bands": [{}]}, ", field bands[0].is: is missing"),
        (
            {"count": 1, "bands": [{"is": "x", "below": -1}]},
            ", field bands[0].below: must be at least 0 (got -1)",
        ),
        (
            {"count": 1, "bands": [{"is": "x"}] * 3},
            ", field bands: must have 0 to 2 entries (got 3)",
        ),
    ],
)
def test_an_object_of_a_file_that_makes_no_record_is_one_line(values: object, line: str) -> None:
    assert refusal(from_values, Example, values, "x.json") == f"x.json{line}"


def test_values_of_a_file_become_what_the_record_has() -> None:
    made = from_values(
        Example, {"count": 3, "speed": 40, "free": ["y"], "bands": [{"is": "x", "below": 2}]}, "f"
    )
    assert made == Example(3, 40.0, free=("y",), bands=(Band("x", 2.0),))
    assert type(made.speed) is float and type(made.bands[0].below) is float
    assert list(wrong_fields(made)) == []


def test_what_a_value_is_can_be_said_before_one_is_there() -> None:
    says = {name: expected(one.hint) for name, one in fields_of(Example).items()}
    assert says["count"] == "a whole number from 1 to 9"
    assert says["speed"] == "a number above 0, at most 100"
    assert (says["word"], says["yes"]) == ("a, b", "true or false")


@pytest.mark.parametrize("record", [Cluster, Settings, Task])
def test_every_number_of_our_records_has_a_range(record: type) -> None:
    numbers = [one for one in fields_of(record).values() if one.kind in (int, float)]
    assert numbers
    for one in numbers:
        assert one.limits.ge is not None or one.limits.gt is not None, one.name
        assert one.limits.le is not None, one.name
