"""The tour says what the core computes today, in short sentences that the glossary covers."""

import re
from collections import Counter

import pytest

from topox_core.labs.generators.catalogue import generator
from topox_core.labs.generators.turns import SERVERS
from topox_core.labs.tour import (
    CLASS_SEED,
    IN_TURNS,
    SCREENS,
    circuits_run,
    live_line,
    notice,
    partner,
    rail_picture,
    round_of,
    screen,
    slots_run,
    times_at,
)
from topox_core.text.glossary import occurrences

AT_MIN = "the iteration takes 11 ms. What binds: critical path, 3 tasks: f → w3 → c3"


def plain(html: str) -> str:
    return re.sub(r"<[^>]+>", "", html).replace("\u00a0", " ")


@pytest.mark.parametrize("name", SCREENS)
def test_a_screen_is_four_short_sentences(name: str) -> None:
    one = screen(name)
    assert len(one.sentences) <= 4
    for part in re.split(r"(?<=[.:;?]) ", plain(" ".join((*one.sentences, notice(name))))):
        assert len(part.split()) <= 20, part
    assert one.start in one.values and occurrences(" ".join(one.sentences))


@pytest.mark.parametrize("name", SCREENS)
def test_every_position_of_the_slider_has_its_line(name: str) -> None:
    for value in screen(name).values:
        assert re.fullmatch(r"[^{]+\.", plain(live_line(name, value)))


def test_at_every_moment_one_server_sends_or_all_compute() -> None:
    execution = circuits_run().execution
    one = generator("turns").make(CLASS_SEED)
    assert execution.makespan_ms == one.free_ms == max(screen("circuits").values)
    for at_ms in screen("circuits").values:
        partners = [partner(execution, server, at_ms) for server in range(SERVERS)]
        assert max(Counter(to for to in partners if to is not None).values(), default=0) <= 1
        expected = f"sends to server {partners[0]}" if partners[0] is not None else "nobody sends"
        assert at_ms == one.free_ms or expected in plain(live_line("circuits", at_ms))


@pytest.mark.parametrize(("slot_ms", "iteration_ms"), [(0.5, 10), (1, 10), (2, 12), (4, 16)])
def test_longer_slots_make_the_blackboard_longer(slot_ms: float, iteration_ms: float) -> None:
    assert slots_run(slot_ms).makespan_ms == iteration_ms
    assert f"takes {iteration_ms} ms" in plain(live_line("slots", slot_ms))


@pytest.mark.parametrize(
    ("delay_ms", "reactive_ms", "provisioned_ms"),
    [(0, 51, 51), (2, 57, 51), (5, 66, 55), (10, 81, 65), (20, 111, 93)],
)
def test_the_delay_decides_who_wins(delay_ms, reactive_ms, provisioned_ms) -> None:
    times = {"static": 65, "reactive": reactive_ms, "provisioned": provisioned_ms}
    assert times_at(float(delay_ms)) == pytest.approx(times)
    assert all(said in plain(notice("delay")) for said in ("Below 4.7 ms", "win up to 10 ms"))


@pytest.mark.parametrize(
    ("ports", "line"),
    [
        (1, "With 1 port the iteration takes 15 ms. What binds: out-ports of server 0"),
        (2, f"With 2 ports {AT_MIN}"),
        (3, f"With 3 ports {AT_MIN}"),
    ],
)
def test_the_third_port_buys_nothing(ports: int, line: str) -> None:
    assert plain(live_line("ports", float(ports))).startswith(line)


@pytest.mark.parametrize(
    ("delay_ms", "ahead_ms", "on_demand_ms"),
    [(1, 10_202, 10_206), (25, 10_296.6, 10_350), (100, 10_600.4, 10_800)],
)
def test_a_slow_switch_hardly_slows_the_rail(delay_ms, ahead_ms, on_demand_ms) -> None:
    delays = rail_picture().delays
    assert delays.base_ms == pytest.approx(10_200, abs=0.1)
    times = {row.delay_ms: (row.provisioned_ms, row.on_demand_ms) for row in delays.rows}
    assert times[delay_ms] == pytest.approx((ahead_ms, on_demand_ms), abs=0.1)
    assert f"takes {ahead_ms - 10_200:.3g} ms more" in plain(live_line("windows", float(delay_ms)))


def test_two_jobs_in_turns_reach_the_bound() -> None:
    assert "takes 40 s in place of 60 s" in plain(live_line("sharing", IN_TURNS))
    assert round_of(IN_TURNS).round_s == round_of(IN_TURNS).bound_s == 40
