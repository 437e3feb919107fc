"""A file that is sound in form and made to cost its reader ends in one line or an answer; ``make fuzz`` measures it."""

import pytest

from tests.fuzz.crafted import CRAFTED, read_crafted

# The others take some seconds each.
QUICK = ("numbers in place of events", "a text workload of many servers", "empty nodes in JSON")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in CRAFTED],
)
def test_a_crafted_file_is_read_or_refused_in_one_line(name, tmp_path):
    assert read_crafted(name, tmp_path).problem == ""
