"""One word, one number: what is called equal is the same everywhere."""

import json
import re
from pathlib import Path

import pytest

import topox_core
from topox_core.claims.claims import CLAIMS
from topox_core.fabrics.compare import EQUAL, ties
from topox_core.figures.maps import sides_legend
from topox_core.figures.palette import LIGHT
from topox_core.text.numbers import percent, whole_percent

ROOT = Path(topox_core.__file__).parents[1]


def test_equal_is_said_in_one_place() -> None:
    files = [path for name in ("topox_core", "topox_ui") for path in (ROOT / name).rglob("*.py")]
    saying = re.compile(r"^(EQUAL|AS_GOOD)\b.*=", re.MULTILINE)
    found = [path.name for path in files if saying.search(path.read_text(encoding="utf-8"))]
    assert found == ["compare.py"]


def test_the_words_have_its_number() -> None:
    words = percent(EQUAL)
    texts = json.loads((ROOT / "topox_core/labs/texts/en.json").read_text(encoding="utf-8"))
    lab = texts["lab"]["all-to-all"]["P1"]["option"]["equal"]
    counted = [one.counted for one in CLAIMS if "by more than" in one.counted]
    assert len(counted) == 7
    for text in (lab, sides_legend(LIGHT)[-1][1], *counted):
        assert words in text.replace(" %", "\u00a0%")


@pytest.mark.parametrize(
    ("costs", "best"),
    [
        ({"a": 1.0, "b": 1.004, "c": 1.006}, ("a", "b")),
        ({"c": 1.006, "b": 1.004, "a": 1.0}, ("b", "a")),
        ({"a": 2.0, "b": 1.0}, ("b",)),
        ({}, ()),
    ],
)
def test_whatever_costs_the_same_is_best_with_the_best(
    costs: dict[str, float], best: tuple[str, ...]
) -> None:
    assert ties(costs) == best


def test_a_lead_that_is_no_tie_is_not_written_as_none() -> None:
    assert [whole_percent(share) for share in (0.004975, 0.007, 0.123)] == ["0.5", "1", "12"]
