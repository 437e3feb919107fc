"""Iteration time against the switching delay: the toy case, the published figures, and where it fails."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from topox_core.fabrics.ideal import run_ideal
from topox_core.fabrics.run import FabricOptions, FabricRequest
from topox_core.model.lowering import lower
from topox_core.rails import measured
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.delay import (
    execution_source,
    iteration_source,
    on_demand_ms,
    provisioned_ms,
    slowest_switch,
    study,
    windows_source,
)
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS
from topox_core.rails.technologies import SCALE_UP, TECHNOLOGIES, fits, gpus, technology
from topox_core.rails.window_lengths import by_class, share_above
from topox_core.schedule.settings import Settings
from topox_core.workloads.samples import load_sample

times = st.floats(0, 1e6, allow_nan=False)
lengths = st.lists(st.floats(-1e3, 1e5, allow_nan=False), min_size=1, max_size=30)
PRESET = PRESETS["llama3-8b-perlmutter"]
RAIL = Rail(nic_gbps=PRESET.nic_gbps)


def test_the_toy_case_of_the_followup_paper() -> None:
    """One window of 1.1 ms, one of more than 50: on demand 2 R, provisioned R - 1.1 ms."""
    base, windows = 62_241.6, (1.1, 60.0)
    assert [round(on_demand_ms(base, windows, delay) / 1e3, 4) for delay in (0, 10, 50)] == [
        62.2416,
        62.2616,
        62.3416,
    ]
    assert [round(provisioned_ms(base, windows, delay) / 1e3, 4) for delay in (0, 10, 50)] == [
        62.2416,
        62.2505,
        62.2905,
    ]


@given(times, lengths, times, times)
def test_windows_in_series_delay_by_what_does_not_fit(
    base: float, windows: list[float], delay: float, more: float
) -> None:
    expected = base + sum(max(0.0, delay - window) for window in windows)
    assert provisioned_ms(base, windows, delay) == pytest.approx(expected)
    assert provisioned_ms(base, windows, delay) <= on_demand_ms(base, windows, delay) * (1 + 1e-12)
    assert provisioned_ms(base, windows, delay) <= provisioned_ms(base, windows, delay + more) * (
        1 + 1e-12
    )


def test_an_overlap_is_serialised_at_any_delay() -> None:
    assert on_demand_ms(100.0, [-3.0, 5.0], 0.0) == provisioned_ms(100.0, [-3.0, 5.0], 0.0) == 103.0
    assert on_demand_ms(100.0, [-3.0, 5.0], 2.0) == 107.0
    assert provisioned_ms(100.0, [-3.0, 5.0], 2.0) == 105.0


def test_the_shipped_window_list() -> None:
    lengths_ms = [window.length_ms for window in measured.WINDOWS]
    assert len(lengths_ms) == 14
    assert round(100 * share_above(lengths_ms, 1.0), 1) == 78.6
    assert round(100 * share_above(lengths_ms, 25.0)) == 57


def test_the_measured_sweeps_at_100_ms() -> None:
    on_demand, provisioned = measured.SWEEPS[:2]
    assert round(100 * (dict(on_demand.rows)[100.0] / on_demand.baseline_s - 1), 2) == 7.13
    assert round(100 * (dict(provisioned.rows)[100.0] / provisioned.baseline_s - 1), 2) == 4.28
    # At large delays the time rises by about six seconds a second: six changes of circuits an
    # iteration.
    (slow, at_slow), (slower, at_slower) = on_demand.rows[-2:]
    assert (at_slower - at_slow) / ((slower - slow) / 1e3) == pytest.approx(6.1, abs=0.1)


def test_the_simulated_preset_shows_what_the_paper_reports() -> None:
    """Section 3.1 and Fig. 8: windows mostly above 1 ms, the longest before the reduce-scatter, 6.5 and 3.5 % at 100 ms."""
    run = simulate(build(PRESET), Rail(nic_gbps=PRESET.nic_gbps, optical=False))
    assert run.iteration_ms == pytest.approx(10_200)
    assert share_above(run.windows, 1.0) > 0.75
    assert max(by_class(run.windows), key=lambda one: one.mean_ms).name.startswith(
        "fsdp reduce-scatter"
    )
    found = study(iteration_source(build(PRESET), RAIL), (0.0, 100.0))
    row = found.rows[1]
    assert 5 <= found.overhead(row.on_demand_ms) <= 8
    assert 3 <= found.overhead(row.provisioned_ms) <= 5
    assert found.rows[0].on_demand_ms == found.rows[0].provisioned_ms == found.base_ms


@given(times.filter(lambda base: base >= 1), lengths, st.floats(0.01, 300))
def test_the_slowest_switch_over_windows_just_keeps_the_limit(
    base: float, windows: list[float], limit: float
) -> None:
    source = windows_source(base, [abs(window) for window in windows])
    delay = slowest_switch(source, limit)
    assert delay is not None
    assert source.both_ms(delay)[1] <= base * (1 + limit / 100) + 1e-6 * base
    assert source.both_ms(delay * 1.002 + 1e-6)[1] > base * (1 + limit / 100)


@pytest.mark.parametrize("provisioned", [True, False])
def test_the_slowest_switch_of_the_preset_just_keeps_five_percent(provisioned: bool) -> None:
    source = iteration_source(build(PRESET), RAIL)
    delay = slowest_switch(source, 5.0, provisioned)
    assert delay is not None
    study_of = study(source, (delay, delay * 1.002))
    kept, broken = (
        study_of.overhead(row.provisioned_ms if provisioned else row.on_demand_ms)
        for row in study_of.rows
    )
    assert kept <= 5.0 + 1e-6 < broken
    # Six changes of circuits lie on the critical chain, and on demand each costs the whole delay.
    assert provisioned or delay == pytest.approx(0.05 * 10_200 / 6)


def test_expert_parallelism_is_where_photonic_rails_fail() -> None:
    """Four exchanges a layer leave no window: at the 25 ms of the largest practical switch the iteration more than doubles."""
    dense = study(iteration_source(build(PRESET), RAIL), (25.0,))
    experts = study(iteration_source(build(PRESETS["mixtral-8x7b"], fold=True), Rail()), (25.0,))
    assert dense.overhead(dense.rows[0].provisioned_ms) < 1.5
    assert experts.overhead(experts.rows[0].provisioned_ms) > 100


@examples(8)
@given(
    st.sampled_from(["llama3-8b-perlmutter", "toy"]),
    st.lists(st.floats(0, 500), min_size=2, max_size=5),
)
def test_a_preset_never_gains_from_a_slower_switch(name: str, delays: list[float]) -> None:
    found = study(iteration_source(build(PRESETS[name], fold=True), RAIL), delays)
    assert all(row.provisioned_ms <= row.on_demand_ms for row in found.rows)
    for one, other in zip(found.rows, found.rows[1:], strict=False):
        assert one.on_demand_ms <= other.on_demand_ms + 1e-6
        assert one.provisioned_ms <= other.provisioned_ms + 1e-6


def test_an_execution_of_another_fabric_is_run_again_on_a_photonic_rail() -> None:
    graph, cluster = load_sample("llama3-8b")
    execution = run_ideal(
        FabricRequest(lower(graph, Settings().lowering), cluster, Settings(), FabricOptions()),
        lambda: False,
    ).execution
    found = study(execution_source(execution), (0.0, 1.0, 100.0))
    assert found.base_ms == pytest.approx(execution.makespan_ms, rel=0.05)
    assert found.rows[0].provisioned_ms == found.base_ms
    assert found.base_ms < found.rows[2].provisioned_ms <= found.rows[2].on_demand_ms
    assert slowest_switch(execution_source(execution), 10.0) is not None


TABLE_3 = {
    "plzt": (576, 64),
    "sip": (1152, 128),
    "rotornet": (4608, 512),
    "mems": (11520, 1280),
    "piezo": (20736, 2304),
    "lc": (18432, 2048),
    "robotic": (36288, 4032),
}


@pytest.mark.parametrize("one", TECHNOLOGIES, ids=lambda one: one.key)
def test_table_3_gpus_are_scale_up_domain_times_half_the_radix(one: object) -> None:
    assert isinstance(one, type(TECHNOLOGIES[0]))
    assert (gpus(one, SCALE_UP["GB200"]), gpus(one, SCALE_UP["H200"])) == TABLE_3[one.key]


def test_a_rail_wider_than_the_switch_may_be_split() -> None:
    piezo = technology("piezo")
    assert fits(piezo, 288) == 1
    assert fits(piezo, 512, split=True) == 2
