"""The owner's limits come from the environment, and a wrong one is a line."""

import pytest

from topox_core.errors import InputError
from topox_ui.runs.limits import CORES, ServerLimits


def test_what_is_not_set_has_a_safe_default():
    limits = ServerLimits.of({})
    assert limits.solver_places == CORES
    assert limits.longest_s == 3600.0
    assert ServerLimits.of({"TOPOX_SOLVER_PLACES": " 3 "}).solver_places == 3
    assert ServerLimits.of({"TOPOX_LONGEST_S": "90.5"}).longest_s == 90.5


@pytest.mark.parametrize("text", ["many", "0", "-1", "nan", "inf", "1e9", "1.5"])
def test_a_limit_that_is_no_number_of_its_range_is_a_line(text):
    with pytest.raises(InputError, match="environment, field TOPOX_SOLVER_PLACES: must be a whole"):
        ServerLimits.of({"TOPOX_SOLVER_PLACES": text})
