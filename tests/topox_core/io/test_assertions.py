"""What a study or job file asserts: rows that are read, kept or failed."""

import json

import pytest

from tests.refusal import refusal
from topox_core.io.assertions import Assertion, assertions_of, failures
from topox_core.studies.study import dump_study, load_study

MEASURES = ("iteration_ms", "gap")
STUDY = {
    "format": "topox-study",
    "version": 1,
    "subject": {"kind": "sample", "name": "race"},
    "assert": ["iteration_ms <= 120", "gap<0.05"],
}


def study(**changes):
    return load_study(json.dumps(STUDY | changes).encode(), "s.study.json")


def test_a_row_is_a_measure_a_sign_and_a_number_and_a_limit_itself_keeps_at_most():
    (most, least) = assertions_of(["iteration_ms <= 120", " gap>1e-3 "], MEASURES)
    assert most == Assertion("iteration_ms", "<=", 120.0) and str(least) == "gap > 0.001"
    assert most.holds(120) and most.holds(119.9) and not most.holds(120.1)
    assert not least.holds(1e-3) and not least.holds(None) and not least.holds(float("nan"))


def test_what_is_not_kept_is_a_line_and_what_is_not_measured_is_none():
    rows = assertions_of(["iteration_ms <= 120", "gap <= 0.05"], MEASURES)
    assert list(failures(rows, {"iteration_ms": 176.44}, "point 3: ")) == [
        "point 3: assert iteration_ms <= 120 failed: 176.44"
    ]
    assert list(failures(rows, {"iteration_ms": 100.0, "gap": None})) == [
        "assert gap <= 0.05 failed: there is none"
    ]


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ("gap <= 1", "field assert: must be a list"),
        (["gap = 1"], "field assert[0]: must be a measure, <= or >= and a numbe"),
        (["gap <= x"], "field assert[0]: must be"),
        (["gap <= nan"], "field assert[0]: must be"),
        (["gap <= 1", "iteration <= 1"], "field assert[1]: unknown measure (did you mean"),
        ([3], "field assert[0]"),
    ],
)
def test_a_row_that_is_none_is_named(rows, line):
    assert line in refusal(study, **{"assert": rows})


def test_a_study_keeps_its_assertions_and_they_are_no_part_of_what_its_points_share():
    one = study()
    assert load_study(dump_study(one), "again") == one
    assert one.digest == study(**{"assert": []}).digest
    assert "unknown measure" in refusal(study, **{"assert": ["round_s <= 1"]})
