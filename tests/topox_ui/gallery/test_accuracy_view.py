"""The view Accuracy: the finding, every comparison, and what is not modelled."""

from typing import Any

from tests.topox_ui.conftest import chart, words
from topox_core.papers.accuracy import NOT_MODELLED
from topox_core.text.foreign import escape_untrusted


def test_it_says_how_far_off_predictions_are_by_kind_and_what_is_not_modelled(visit: Any) -> None:
    at = visit("Accuracy")
    assert not at.exception
    said = words(at)
    assert "off by 3.90 % in the median on A100 (8 runs)" in said.replace("\u00a0", " ")
    assert "at most 1.12 % off, whole iterations 23.5 %" in said.replace("\u00a0", " ")
    assert "no measured run on optical switches was at hand" in said
    for what in NOT_MODELLED:
        assert escape_untrusted(what, "html") in said
    names = [one["text"] for one in chart(at, "accuracy_dots")["layout"]["annotations"]]
    assert len(names) == 10 and "Collectives, LogGOPSim" in names
    assert "252 comparisons; " in said and not at.dataframe, "a table whose names wrap"
