"""What the owner of a server sets holds, whoever asks for more."""

import pytest

from tests.refusal import refusal
from tests.topox_ui.conftest import address, the_error
from topox_ui.runs.limits import ServerLimits
from topox_ui.state.scenario import Scenario


def test_by_default_nobody_else_reaches_the_server() -> None:
    assert ServerLimits.of({}).address == "127.0.0.1"


@pytest.mark.parametrize(
    ("variable", "text", "says"),
    [
        *(
            ("SOLVER_PLACES", text, "must be a whole number")
            for text in ("many", "0", "-1", "nan", "inf", "1e9", "1.5")
        ),
        *(("ADDRESS", text, "") for text in ("a\nb", "a b", "x" * 300)),
        ("RUN_LIBRARY", "perhaps", "must be yes or no"),
    ],
)
def test_a_limit_that_is_none_of_its_range_is_a_line(variable: str, text: str, says: str) -> None:
    line = refusal(ServerLimits.of, {f"TOPOX_{variable}": text})
    assert f"environment, field TOPOX_{variable}: {says}" in line and len(line) < 200


@pytest.mark.parametrize(
    ("address", "said", "kept"),
    [
        ("127.0.0.1", "", True),
        ("localhost", "", True),
        ("0.0.0.0", "", False),
        ("class.example", "", False),
        ("0.0.0.0", "yes", True),
        ("127.0.0.1", "no", False),
    ],
)
def test_runs_are_kept_by_default_only_where_nobody_else_reaches_the_server(
    address: str, said: str, kept: bool
) -> None:
    limits = ServerLimits.of({"TOPOX_ADDRESS": address, "TOPOX_RUN_LIBRARY": said})
    assert limits.keeps_runs is kept


@pytest.mark.parametrize(
    ("address", "hosts", "shared"),
    [("127.0.0.1", "", False), ("0.0.0.0", "", True), ("127.0.0.1", "topox.example.org", True)],
)
def test_a_server_is_shared_where_another_machine_reaches_it_itself_or_through_a_proxy(
    address: str, hosts: str, shared: bool
) -> None:
    assert ServerLimits.of({"TOPOX_ADDRESS": address, "TOPOX_HOSTS": hosts}).shared is shared


def test_a_link_gets_no_more_time_and_no_more_tasks_than_the_server_gives(
    owner_sets, visit
) -> None:
    owner_sets(LONGEST_S="10", MOST_TASKS="100")
    at = visit("Schedule", sample="blackboard", time_limit_s="1e9", race_s="300")
    assert at.warning[0].value.startswith("Ignored in the link: time_limit_s=1e9")
    assert not {"time_limit_s", "race_s"} & address(at).keys()
    at = visit("Home", workload="moe", **{"set.layers": "40"})
    assert "more than 100 tasks" in the_error(at)
    assert Scenario().settings().time_limit_s == 10.0
    assert "at most 10" in refusal(Scenario(time_limit_s=11.0).settings)
