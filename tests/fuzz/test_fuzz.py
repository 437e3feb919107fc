"""Whatever a file says, it is read or refused in one short line; ``make fuzz`` asks this of 60,000 files and measures them."""

import pytest
from hypothesis import HealthCheck, given, strategies as st

from tests.conftest import examples
from tests.fuzz.crafted import CRAFTED, read_crafted
from tests.fuzz.formats import FORMATS
from tests.fuzz.reading import problem_of
from topox_core.errors import InputError


# Costly files are read by ``make fuzz`` alone.
@pytest.mark.parametrize("name", [one for one in FORMATS if not one.startswith("costly")])
@examples(60, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_a_malformed_file_is_read_or_refused_in_one_short_line(
    name: str, data: st.DataObject
) -> None:
    form = FORMATS[name]
    try:
        form.load(data.draw(form.cases), form.file)
    except InputError as error:
        assert problem_of(str(error)) == ""


# The others take some seconds each.
QUICK = ("numbers in place of events", "a text workload of many servers", "empty nodes in JSON")


@pytest.mark.parametrize(
    "name",
    [pytest.param(one, marks=() if one in QUICK else pytest.mark.long) for one in CRAFTED],
)
def test_a_crafted_file_is_read_or_refused_in_one_line(name, tmp_path):
    assert read_crafted(name, tmp_path).problem == ""
