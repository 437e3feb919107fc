"""Iteration time against the switching delay, the papers' tables as an adviser, and what cannot be asked of rails."""

from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.refusal import refusal
from tests.topox_core.rails.rail_iterations import chain
from topox_core.rails import measured
from topox_core.rails.advice import TABLE_2, advise, byte_classes, constraints
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.delay import (
    iteration_source,
    on_demand_ms,
    provisioned_ms,
    slowest_switch,
    study,
    windows_source,
)
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS, changed, preset
from topox_core.rails.technologies import SCALE_UP, fits, gpus, technology
from topox_core.rails.window_lengths import by_class, share_above
from topox_core.rails.windows import windows_by_formula, windows_by_stage
from topox_core.training.job import Job

lengths = st.lists(st.floats(-1e3, 1e5, allow_nan=False), min_size=1, max_size=30)
PRESET = PRESETS["llama3-8b-perlmutter"]
RAIL = Rail(nic_gbps=PRESET.machine.nic_gbps)


def test_an_overlap_is_serialised_at_any_delay() -> None:
    assert on_demand_ms(100.0, [-3.0, 5.0], 0.0) == provisioned_ms(100.0, [-3.0, 5.0], 0.0) == 103.0
    assert on_demand_ms(100.0, [-3.0, 5.0], 2.0) == 107.0
    assert provisioned_ms(100.0, [-3.0, 5.0], 2.0) == 105.0


def test_the_shipped_window_list() -> None:
    lengths_ms = [window.length_ms for window in measured.WINDOWS]
    shares = [100 * share_above(lengths_ms, limit_ms) for limit_ms in (1.0, 25.0)]
    assert (len(lengths_ms), shares) == (14, pytest.approx([78.57, 57.14], abs=5e-3))


def test_the_measured_sweeps_at_100_ms() -> None:
    on_demand, provisioned = measured.SWEEPS[:2]
    costs = [dict(one.rows)[100.0] / one.baseline_s - 1 for one in (on_demand, provisioned)]
    assert costs == pytest.approx([0.0713, 0.0428], abs=5e-5)
    # At large delays the time rises by about six seconds a second: six changes of circuits an
    # iteration.
    (slow, at_slow), (slower, at_slower) = on_demand.rows[-2:]
    assert (at_slower - at_slow) / ((slower - slow) / 1e3) == pytest.approx(6.1, abs=0.1)


def test_the_simulated_preset_shows_what_the_paper_reports() -> None:
    """Section 3.1 and Fig. 8: windows mostly above 1 ms, the longest before the reduce-scatter, 6.5 and 3.5 % at 100 ms."""
    run = simulate(build(PRESET), Rail(nic_gbps=PRESET.machine.nic_gbps, optical=False))
    assert run.iteration_ms == pytest.approx(10_200)
    assert share_above(run.windows, 1.0) > 0.75
    assert max(by_class(run.windows), key=lambda one: one.mean_ms).name.startswith(
        "fsdp reduce-scatter"
    )
    found = study(iteration_source(build(PRESET), RAIL), (0.0, 100.0))
    at_once, slow = found.rows
    assert 5 <= found.overhead(slow.on_demand_ms) <= 8
    assert 3 <= found.overhead(slow.provisioned_ms) <= 5
    assert at_once.on_demand_ms == at_once.provisioned_ms == found.base_ms


@given(st.floats(1, 1e6), lengths, st.floats(0.01, 300))
def test_the_slowest_switch_over_windows_just_keeps_the_limit(
    base: float, windows: list[float], limit: float
) -> None:
    source = windows_source(base, [abs(window) for window in windows])
    delay = slowest_switch(source, limit)
    assert source.both_ms(delay)[1] <= base * (1 + limit / 100) + 1e-6 * base
    assert source.both_ms(delay * 1.002 + 1e-6)[1] > base * (1 + limit / 100)


@pytest.mark.parametrize("provisioned", [True, False])
def test_the_slowest_switch_of_the_preset_just_keeps_five_percent(provisioned: bool) -> None:
    source = iteration_source(build(PRESET), RAIL)
    delay = slowest_switch(source, 5.0, provisioned)
    study_of = study(source, (delay, delay * 1.002))
    kept, broken = (
        study_of.overhead(row.provisioned_ms if provisioned else row.on_demand_ms)
        for row in study_of.rows
    )
    assert kept <= 5.0 + 1e-6 < broken
    # Six changes of circuits lie on the critical chain, and on demand each costs the whole delay.
    assert provisioned or delay == pytest.approx(0.05 * 10_200 / 6)


@examples(8)
@given(
    st.sampled_from(["llama3-8b-perlmutter", "toy"]),
    st.lists(st.floats(0, 500), min_size=2, max_size=5),
)
def test_a_preset_never_gains_from_a_slower_switch(name: str, delays: list[float]) -> None:
    found = study(iteration_source(build(PRESETS[name], fold=True), RAIL), delays)
    assert all(row.provisioned_ms <= row.on_demand_ms for row in found.rows)
    for way in ("on_demand_ms", "provisioned_ms"):
        assert (np.diff([getattr(row, way) for row in found.rows]) >= -1e-6).all()


TABLE_3 = {
    "plzt": (576, 64),
    "sip": (1152, 128),
    "rotornet": (4608, 512),
    "mems": (11520, 1280),
    "piezo": (20736, 2304),
    "lc": (18432, 2048),
    "robotic": (36288, 4032),
}


@pytest.mark.parametrize("name", TABLE_3)
def test_table_3_gpus_are_scale_up_domain_times_half_the_radix(name: str) -> None:
    found = [gpus(technology(name), SCALE_UP[one]) for one in ("GB200", "H200")]
    assert tuple(found) == TABLE_3[name]


def test_a_rail_wider_than_the_switch_may_be_split() -> None:
    piezo = technology("piezo")
    assert (fits(piezo, 288), fits(piezo, 512, split=True)) == (1, 2)


# -- tables 1 and 2 as an adviser ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("parameters", "count", "strategies"),
    [
        (8e9, 1, ("TP", "DP")),
        (8e9, 8, ("TP", "DP")),
        (70e9, 9, ("TP & PP", "TP & DP", "DP")),
        (70e9, 512, ("TP & PP", "TP & DP", "DP")),
        (70e9, 513, ("DP & PP", "DP & TP")),
        (70e9, 1024, ("DP & PP", "DP & TP")),
        (405e9, 1025, ("TP, DP & PP",)),
        (405e9, 16_384, ("TP, DP & PP",)),
        (10e9, 16, ("TP & PP", "TP & DP", "DP")),
    ],
)
def test_table_1_row_by_row(parameters: float, count: int, strategies: tuple[str, ...]) -> None:
    assert advise(parameters, count).practice.strategies == strategies


@pytest.mark.parametrize(
    ("parameters", "count", "what"),
    [(8e9, 16, "small model on more than 8"), (70e9, 8, "large model on 8")],
)
def test_where_the_table_has_no_row_the_advice_says_so(
    parameters: float, count: int, what: str
) -> None:
    advice = advise(parameters, count)
    assert (advice.practice, what in advice.note) == (None, True)


def test_table_2_says_what_the_built_traffic_does() -> None:
    rows = {row.key: row for row in TABLE_2}
    assert [row.key for row in TABLE_2 if not row.on_rail] == ["tp", "tp_sp"]
    assert rows["fsdp"].collective == "AllGather, ReduceScatter"
    names = {
        "all_gather": "AllGather",
        "reduce_scatter": "ReduceScatter",
        "all_reduce": "AllReduce",
        "all_to_all": "AllToAll",
        "send": "Send/Recv",
    }
    for job in PRESETS.values():
        for one in byte_classes(job):
            # The table of the paper has no tied tables, whose two ends a pipeline's circuit joins.
            tied = job.shape.tied and one.when == "after the gradients"
            assert tied or names[one.operation] in rows[one.parallelism].collective


BIG = PRESETS["llama3.1-405b-16384"]
THREE = PRESETS["llama3.1-405b-16384-cp"]
SPANNING = PRESETS["deepseek-16b"].changed(plan__expert=64)
CONTEXT = changed(PRESET, {"pipeline": 1, "data": 1, "context": 4, "iteration_ms": None})


@pytest.mark.parametrize(
    ("job", "ports", "latency_us", "number", "limits", "why"),
    [
        (PRESETS["mixtral-8x7b"], 6, 1.0, 1, True, "all-to-all among 8"),
        (PRESETS["mixtral-8x7b"], 6, 1.0, 2, False, ""),
        # Over all replicas, expert and context parallelism run on their ring.
        (SPANNING, 2, 1.0, 2, False, "+ EP (one ring) on the rail: 2 ports needed"),
        (CONTEXT, 2, 1.0, 2, False, "FSDP + CP (one ring)"),
        (SPANNING, 2, 1.0, 3, False, ""),
        # Long rings of small shards are bound by their steps.
        (BIG, 2, 1.0, 1, False, ""),
        (BIG, 2, 100.0, 1, True, ""),
        # The degree of 6 that the paper names for three parallelisms.
        (THREE, 2, 1.0, 2, True, ""),
        (THREE, 4, 1.0, 2, True, "6 ports"),
        (THREE, 6, 1.0, 2, False, ""),
        # The paper's example of the third: DP and PP on four 100 Gbit/s ports.
        (PRESET, 4, 1.0, 3, True, "50\u00a0% of the NIC"),
        (changed(PRESET, {"pipeline": 1, "data": 4}), 4, 1.0, 3, False, ""),
    ],
)
def test_the_constraints_c1_to_c3_of_the_paper(
    job: Job, ports: int, latency_us: float, number: int, limits: bool, why: str
) -> None:
    found = constraints(job, ports, latency_us)[number - 1]
    assert found.limits is limits
    assert why in found.why


def test_circuits_stay_where_the_ports_suffice_for_all_of_them_at_once() -> None:
    assert simulate(build(CONTEXT), Rail()).reconfigurations == 0
    assert not constraints(CONTEXT)[1].limits
    assert constraints(PRESET)[1].limits


# -- what cannot be asked, in one line -------------------------------------------------------------


PIPELINE = changed(PRESET, {"pipeline": 4, "data": 4, "gpus": 64, "iteration_ms": None})
REFUSED: dict[str, Callable[[], object]] = {
    "settings, field reconfiguration_ms: must be at least 0 (got -1)": lambda: simulate(
        chain(1.0, 2.0), Rail(reconfiguration_ms=-1.0)
    ),
    "settings, field link_up_ms: must be a finite number (got nan)": lambda: simulate(
        chain(1.0, 2.0), Rail(link_up_ms=float("nan"))
    ),
    "settings, field nic_gbps: must be from 1e-06 to 1e+12 (got 0)": lambda: simulate(
        chain(1.0, 2.0), Rail(nic_gbps=0.0)
    ),
    "settings, field nic_ports: must be at least 1 (got 0)": lambda: simulate(
        chain(1.0, 2.0), Rail(nic_ports=0)
    ),
    "needs 4 ports per NIC, one for each neighbour (fsdp 2, pp 2); got 2": lambda: simulate(
        build(PIPELINE), Rail(static_split=True)
    ),
    "settings, field reconfiguration_ms: must be at least 0 (got -5)": lambda: iteration_source(
        build(PRESET), Rail(reconfiguration_ms=-5.0)
    ),
    "settings, field microbatches: must be a whole number of at least 1 (got 0)": lambda: (
        windows_by_formula(0)
    ),
    "settings, field stages: must be a whole number of at least 1 (got 0)": lambda: (
        windows_by_stage(0, 4)
    ),
    "settings, field schedule: unknown schedule": lambda: windows_by_stage(4, 4, "gpipes"),
    "settings, field microbatches: must be a multiple of the 4 stages": lambda: windows_by_stage(
        4, 6, "interleaved"
    ),
    "settings: 1,000 stages and 10,000 microbatches make 20,000,000 passes": lambda: (
        windows_by_stage(1000, 10_000)
    ),
    "settings, field windows: at least one window is needed (the list is empty)": lambda: (
        provisioned_ms(10.0, [], 1.0),
    ),
    "field windows: at least one window is needed": lambda: share_above([], 1.0),
    "settings, field delay_ms: must be at least 0 (got -1)": lambda: on_demand_ms(
        10.0, [1.0], -1.0
    ),
    "settings, field windows: must be finite numbers": lambda: on_demand_ms(
        10.0, [float("nan")], 1.0
    ),
    "settings, field base_ms: must be at least 0 (got -10)": lambda: on_demand_ms(
        -10.0, [1.0], 1.0
    ),
    "settings, field delays_ms: must be 1 to 200 values (got 0)": lambda: study(
        windows_source(10.0, [1.0]), ()
    ),
    "settings, field delay_ms: must be a finite number (got inf)": lambda: study(
        windows_source(10.0, [1.0]), (1.0, float("inf"))
    ),
    "settings, field limit_percent: must be at least 0 (got -1)": lambda: slowest_switch(
        windows_source(10.0, [1.0]), -1.0
    ),
    "settings, field limit_percent: the overhead is above 1 % even": lambda: slowest_switch(
        windows_source(10.0, [-1.0]), 1.0
    ),
    "settings, field technology: unknown technology (did you mean 'piezo'?)": lambda: technology(
        "piezzo"
    ),
    "a rail of 512 servers needs 1,024 ports, more than the 576 of Piezo (Polatis)": lambda: fits(
        technology("piezo"), 512
    ),
    "settings, field parameters: must be": lambda: advise(0, 8),
    "field parameters: must be": lambda: advise(float("nan"), 8),
    "settings, field gpus: must be": lambda: advise(1e9, 0),
    "field gpus: must be": lambda: advise(1e9, True),
    "did you mean 'llama3-70b'": lambda: preset("llama3-70"),
    # Sizes are named before memory is spent.
    "more than the limit of 4,000,000: fold its replicas": lambda: build(
        changed(BIG, {"gpus": 999_424, "data": 7_808, "microbatches": 16})
    ),
    "steps for each rank of a stage, more than the limit of 1,000,000": lambda: build(
        changed(
            PRESETS["llama3-70b"],
            {"gpus": 64, "pipeline": 2, "data": 2, "microbatches": 4096, "context": 2},
        ),
        fold=True,
    ),
    "field iteration_ms: must be more than the": lambda: build(
        changed(PRESET, {"iteration_ms": 10.0})
    ),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_is_told_in_one_line(line: str) -> None:
    assert line in refusal(REFUSED[line])
