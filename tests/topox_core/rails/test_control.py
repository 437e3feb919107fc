"""The control plane: hand-solved iterations, and what every simulated one must keep."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.conftest import examples
from tests.topox_core.rails.rail_iterations import (
    GATHER_MS,
    SEND_MS,
    Maker,
    check_run,
    groups,
    two_by_two,
)
from topox_core.errors import InputError
from topox_core.rails.builder import build
from topox_core.rails.control.messages import CHECKIN_ACK, COMM, CONFIG_ACK, CONFIG_REQ, NACK
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import (
    ALL_GATHER,
    ALL_REDUCE,
    ALL_TO_ALL,
    COMPUTE,
    REDUCE_SCATTER,
    SEND,
    Rail,
    RailIteration,
)
from topox_core.rails.presets import PRESETS
from topox_core.rails.timing import durations_ms, wire_bytes

DEMAND = Rail(reconfiguration_ms=10.0, provisioned=False)
AHEAD = Rail(reconfiguration_ms=10.0)


def chain(*windows_ms: float) -> RailIteration:
    """Ring and pair of rank 0 in turn, 1 ms each, after so much computing."""
    maker = Maker(groups(("fsdp", (0, 1)), ("pp", (0, 2))), 3)
    before: tuple[int, ...] = ()
    for k, window in enumerate(windows_ms):
        busy = maker.compute(0, window, *before)
        kind, size = (SEND, SEND_MS) if k % 2 else (ALL_GATHER, GATHER_MS)
        before = (maker.talk(kind, k % 2, size, busy),)
    return maker.iteration()


@given(st.lists(st.floats(0, 50), min_size=1, max_size=12), st.floats(0, 60))
def test_windows_in_series_stall_by_what_does_not_fit(windows: list[float], delay: float) -> None:
    iteration = chain(*windows)
    ahead = simulate(iteration, replace(AHEAD, reconfiguration_ms=delay))
    demand = simulate(iteration, replace(DEMAND, reconfiguration_ms=delay))
    assert ahead.undisturbed_ms == pytest.approx(sum(windows) + len(windows))
    # The first phase finds its ring unless the iteration before ended with the pair; then it was
    # asked for at its very end.
    changes = windows if len(windows) % 2 == 0 else windows[1:]
    assert ahead.stall_ms == pytest.approx(
        sum(max(0.0, delay - window) for window in changes), abs=1e-6
    )
    assert demand.stall_ms == pytest.approx(delay * len(changes), abs=1e-6)
    assert ahead.reconfigurations == demand.reconfigurations == len(changes)


def test_link_up_is_dark_time_beside_switching() -> None:
    iteration = chain(1.0, 4.0, 1.0, 4.0)
    both = simulate(iteration, Rail(reconfiguration_ms=3.0, link_up_ms=7.0))
    assert both.stall_ms == pytest.approx(simulate(iteration, AHEAD).stall_ms)
    acknowledged = [one.at_ms for one in both.messages if one.word == CONFIG_ACK]
    dark = [one for one in both.circuits if one.changed]
    # The controller answers when the switch has turned; light comes later.
    assert sorted(set(acknowledged)) == pytest.approx([one.setup_ms + 3.0 for one in dark])
    assert all(one.start_ms == pytest.approx(one.setup_ms + 10.0) for one in dark)


def test_the_very_first_iteration_sets_up_everything_on_demand() -> None:
    iteration = chain(1.0, 4.0)
    first = simulate(iteration, AHEAD, profile=False)
    assert first.iteration_ms == pytest.approx(1 + 10 + 1 + 4 + 10 + 1)
    assert first.iteration_ms == simulate(iteration, DEMAND, profile=False).iteration_ms
    assert all(one.setup_ms >= 0 for one in first.circuits)


def test_first_come_first_served_and_no_circuit_is_taken_from_traffic() -> None:
    """Rank 0 gathers for 5 ms; a message ready at 2 waits, and a gather ready at 3 waits behind the message."""
    maker = two_by_two()
    maker.talk(ALL_GATHER, 0, 5 * GATHER_MS)
    message = maker.talk(SEND, 2, SEND_MS, maker.compute(0, 2.0))
    second = maker.talk(ALL_GATHER, 0, GATHER_MS, maker.compute(0, 1.0), maker.compute(1, 3.0))
    iteration = maker.iteration()
    run = simulate(iteration, DEMAND, profile=False)
    check_run(run)
    assert run.start_ms[message] == 10 + 5 + 10
    assert run.start_ms[second] == run.end_ms[message] + 10


def test_rank_in_the_middle_of_a_pipeline_keeps_both_neighbours() -> None:
    maker = Maker(groups(("pp", (0, 1)), ("pp", (1, 2))), 3)
    node = maker.compute(0, 1.0)
    for _ in range(3):
        down = maker.talk(SEND, 0, SEND_MS, node)
        node = maker.talk(SEND, 1, SEND_MS, maker.compute(1, 1.0, down))
        node = maker.compute(0, 1.0, node)
    run = simulate(maker.iteration(), DEMAND)
    assert run.reconfigurations == 0
    assert run.stall_ms == 0
    # Each neighbour has half the ports, so a message takes twice as long as with the whole NIC.
    assert run.end_ms[1] - run.start_ms[1] == pytest.approx(2.0)


def test_groups_of_the_same_ranks_share_their_ring_and_the_controller_says_so() -> None:
    maker = Maker(groups(("fsdp", (0, 1)), ("dp", (0, 1))), 2)
    scatter = maker.talk(REDUCE_SCATTER, 0, GATHER_MS, maker.compute(0, 1.0), maker.compute(1, 1.0))
    maker.talk(ALL_REDUCE, 1, 4.0, scatter)
    run = simulate(maker.iteration(), DEMAND)
    assert run.reconfigurations == 0
    assert Counter(one.word for one in run.messages)[NACK] >= 2
    assert CONFIG_ACK not in {one.word for one in run.messages}


def test_reconfiguration_is_by_group_not_global() -> None:
    """Replica 0 sends while the other stage's ring, of other ranks, goes on gathering (Fig. 3b)."""
    maker = Maker(groups(("fsdp", (0, 1)), ("pp", (0, 2)), ("fsdp", (3, 4))), 5)
    maker.talk(ALL_GATHER, 0, GATHER_MS)
    maker.talk(SEND, 1, SEND_MS, maker.compute(0, 5.0))
    gathers = [maker.talk(ALL_GATHER, 2, 8 * GATHER_MS) for _ in range(4)]
    run = simulate(maker.iteration(), DEMAND)
    assert run.end_ms[gathers[-1]] == pytest.approx(32.0)
    assert {one.group for one in run.circuits if one.changed} == {0, 1}


def test_a_static_split_switches_nothing_and_halves_the_bandwidth() -> None:
    maker = two_by_two()
    gather = maker.talk(ALL_GATHER, 0, 10 * GATHER_MS)
    message = maker.talk(SEND, 2, 10 * SEND_MS, maker.compute(0, 2.0))
    split = simulate(maker.iteration(), replace(DEMAND, nic_ports=4, static_split=True))
    shared = simulate(maker.iteration(), replace(DEMAND, nic_ports=4, reconfiguration_ms=0.0))
    assert (split.reconfigurations, split.stall_ms, split.messages) == (0, 0.0, ())
    for node in (gather, message):
        assert split.end_ms[node] - split.start_ms[node] == pytest.approx(
            2 * (shared.end_ms[node] - shared.start_ms[node])
        )
    # Both parallelisms have ports of their own: neither waits for the other.
    assert split.start_ms[message] == 2.0 < shared.start_ms[message]


def test_a_static_split_needs_a_port_for_every_neighbour() -> None:
    preset = PRESETS["llama3-8b-perlmutter"].changed(pipeline=4, data=4, gpus=64, iteration_ms=None)
    with pytest.raises(
        InputError, match=r"needs 4 ports a NIC, one for each neighbour \(fsdp 2, pp 2\); got 2"
    ):
        simulate(build(preset), Rail(static_split=True))


def test_rings_only_costs_an_all_to_all_its_direct_way() -> None:
    maker = Maker(groups(("ep", tuple(range(8)))), 8)
    maker.talk(ALL_TO_ALL, 0, 8e6)
    maker.talk(ALL_GATHER, 0, 8e6)
    electrical, ring = (
        durations_ms(maker.iteration(), Rail(optical=optical, latency_us=1.0))
        for optical in (False, True)
    )
    direct = 7e6 * 8 / 400e6
    assert electrical == pytest.approx([direct + 0.001, direct + 3 * 0.001])
    # Pieces go two hops on average among eight (16 of 8 a member, both ways round); a gather needs
    # no more bytes, but 7 steps.
    assert ring == pytest.approx([16e6 * 8 / 400e6 + 4 * 0.001, direct + 7 * 0.001])


@pytest.mark.parametrize(
    ("kind", "sent"),
    [(ALL_GATHER, 0.75), (REDUCE_SCATTER, 0.75), (ALL_REDUCE, 1.5), (ALL_TO_ALL, 0.75)],
)
def test_wire_bytes_of_rings(kind: int, sent: float) -> None:
    maker = Maker(groups(("dp", (0, 1, 2, 3))), 4)
    maker.talk(kind, 0, 4e6)
    assert wire_bytes(maker.iteration()) == pytest.approx([sent * 4e6])


def test_ranks_that_wait_for_each_other_in_a_circle_are_told() -> None:
    maker = Maker(groups(("dp", (0, 1))), 2)
    maker.talk(ALL_GATHER, 0, 1e6)
    maker.talk(ALL_GATHER, 0, 1e6)
    iteration = maker.iteration()
    crossed = replace(iteration, issue_idx=np.array([0, 1, 1, 0], np.int32))
    with pytest.raises(InputError, match="wait for each other in a circle"):
        simulate(crossed, AHEAD)


@st.composite
def iterations(draw: st.DrawFn) -> RailIteration:
    """Any iteration whose ranks issue everything in one common order."""
    ranks = draw(st.integers(2, 5))
    everyone = list(range(ranks))
    sets = draw(
        st.lists(
            st.tuples(
                st.sampled_from(["fsdp", "dp", "cp"]),
                st.lists(st.sampled_from(everyone), min_size=2, max_size=ranks, unique=True),
            ),
            max_size=3,
        )
    )
    pairs = draw(
        st.lists(
            st.lists(st.sampled_from(everyone), min_size=2, max_size=2, unique=True),
            min_size=1,
            max_size=3,
        )
    )
    made = groups(
        *[(word, tuple(sorted(members))) for word, members in sets],
        *[("pp", tuple(sorted(pair))) for pair in pairs],
    )
    maker = Maker(made, ranks)
    for _ in range(draw(st.integers(1, 20))):
        earlier = (
            draw(st.lists(st.integers(0, len(maker.rows) - 1), max_size=3, unique=True))
            if maker.rows
            else []
        )
        g = draw(st.integers(-1, len(made) - 1))
        if g < 0:
            maker.compute(draw(st.integers(0, ranks - 1)), draw(st.integers(0, 6)), *earlier)
        else:
            kind = (
                SEND
                if g >= len(sets)
                else draw(st.sampled_from([ALL_GATHER, REDUCE_SCATTER, ALL_REDUCE, ALL_TO_ALL]))
            )
            maker.talk(kind, g, draw(st.integers(0, 4)) * GATHER_MS, *earlier)
    return maker.iteration()


rails = st.builds(
    Rail,
    nic_ports=st.integers(1, 4),
    reconfiguration_ms=st.sampled_from([0.0, 0.5, 3.0, 20.0]),
    link_up_ms=st.sampled_from([0.0, 2.0]),
    provisioned=st.booleans(),
)


@examples(60)
@given(iterations(), rails, st.booleans())
def test_every_run_keeps_orders_circuits_and_promises(
    iteration: RailIteration, rail: Rail, profile: bool
) -> None:
    run = simulate(iteration, rail, profile=profile, messages=100_000)
    check_run(run)
    assert run.messages_sent == len(run.messages)
    said = Counter(one.word for one in run.messages)
    assert said[COMM] == said[CHECKIN_ACK]
    # Every request is answered once, to whom it came from, about what it asked for, and not before.
    assert said[CONFIG_REQ] == said[CONFIG_ACK] + said[NACK]
    asked = Counter((one.sender, one.group) for one in run.messages if one.word == CONFIG_REQ)
    told = Counter(
        (one.receiver, one.group) for one in run.messages if one.word in (CONFIG_ACK, NACK)
    )
    assert asked == told
    changed = [one for one in run.circuits if one.changed]
    assert run.reconfigurations >= len(changed)
    # Each rank announces each of its communications, or asks with it.
    calls = int((iteration.kind[iteration.issue_idx] != COMPUTE).sum())
    ahead = rail.provisioned and profile
    assert said[COMM] + (0 if ahead else said[CONFIG_REQ]) == calls
    assert simulate(iteration, rail, profile=profile, messages=100_000).messages == run.messages


@examples(60)
@given(iterations(), rails)
def test_provisioning_is_never_later_than_demand(iteration: RailIteration, rail: Rail) -> None:
    ahead = simulate(iteration, replace(rail, provisioned=True))
    demand = simulate(iteration, replace(rail, provisioned=False))
    assert np.all(ahead.start_ms <= demand.start_ms + 1e-9)


@examples(25)
@given(iterations(), st.integers(1, 4))
def test_a_rail_that_switches_at_once_is_only_as_slow_as_its_rings(
    iteration: RailIteration, ports: int
) -> None:
    optical = simulate(iteration, Rail(nic_ports=ports))
    assert optical.iteration_ms == pytest.approx(optical.undisturbed_ms)
    electrical = simulate(iteration, Rail(nic_ports=ports, optical=False))
    assert (
        electrical.stall_ms,
        electrical.reconfigurations,
        electrical.circuits,
        electrical.messages,
    ) == (0.0, 0, (), ())


@examples(12)
@given(
    st.sampled_from([2, 4]),
    st.sampled_from([1, 2, 5]),
    st.sampled_from(["1f1b", "afab"]),
    st.floats(0, 400),
)
def test_the_sum_over_all_windows_bounds_the_stall(
    stages: int, microbatches: int, schedule: str, delay: float
) -> None:
    preset = PRESETS["llama3-8b-perlmutter"].changed(
        pipeline=stages,
        gpus=stages * 8,
        microbatches=microbatches,
        schedule=schedule,
        iteration_ms=None,
    )
    iteration = build(preset)
    calm = simulate(iteration, Rail(nic_gbps=200.0))
    run = simulate(iteration, Rail(nic_gbps=200.0, reconfiguration_ms=delay))
    lengths = [one.length_ms for one in calm.windows]
    for rank in range(iteration.ranks):  # and the window between two iterations
        nodes = iteration.issue_idx[iteration.issue_ptr[rank] : iteration.issue_ptr[rank + 1]]
        nodes = nodes[iteration.kind[nodes] != COMPUTE]
        lengths.append(calm.iteration_ms - calm.end_ms[nodes].max() + calm.start_ms[nodes].min())
    assert run.stall_ms <= sum(max(0.0, delay - length) for length in lengths) + 1e-6


@pytest.mark.parametrize(
    ("stages", "microbatches"), [(2, 1), (2, 6), (3, 2), (4, 4), (4, 9), (8, 3)]
)
def test_a_very_slow_switch_costs_as_many_delays_as_changes_lie_on_the_longest_chain(
    stages: int, microbatches: int
) -> None:
    """A microbatch changes circuits twice where it enters a stage, M + P - 2 times in turn and each way: 4 (M + P - 2) in all.

    In 1F1B a gradient leaves right where an activation has come in; at the turning point that saves
    two.
    """
    delay = 1e6
    for schedule in ("afab", "1f1b"):
        job = PRESETS["llama3-70b"].changed(
            pipeline=stages, data=2, gpus=16 * stages, microbatches=microbatches, schedule=schedule
        )
        run = simulate(
            build(job, fold=True, by_layer=False), Rail(reconfiguration_ms=delay, provisioned=False)
        )
        chain_of = 4 * (microbatches + stages - 2)
        if schedule == "1f1b":
            chain_of = 2 * (microbatches + 1) if stages == 2 else chain_of - 2
        assert run.stall_ms / delay == pytest.approx(chain_of, abs=0.01)


def test_expert_parallelism_costs_about_what_the_authors_simulate() -> None:
    """256 GPUs, PP 4, 4 microbatches, EP 8 on the rail: their iteration of 10,173 ms grows by 30 changes, +2.9 % at 10 ms."""
    job = PRESETS["mixtral-8x7b"].changed(
        microbatches=4, schedule="afab", fsdp=False, iteration_ms=10_173.0
    )
    run = simulate(build(job, fold=True), Rail(reconfiguration_ms=10.0, provisioned=False))
    assert 20 <= run.stall_ms / 10 <= 30
    assert 0.02 <= run.stall_ms / run.undisturbed_ms <= 0.03


def test_gathers_between_all_to_alls_are_what_makes_experts_fail() -> None:
    """With weights copied the all-to-alls of all layers follow each other on one ring, which nothing takes from them."""
    stalls = {}
    for fsdp in (True, False):
        iteration = build(PRESETS["deepseek-16b"].changed(fsdp=fsdp, microbatches=2), fold=True)
        run = simulate(iteration, Rail(reconfiguration_ms=10.0))
        stalls[fsdp] = run.stall_ms / run.undisturbed_ms
    assert stalls[False] < 0.1 < 5 < stalls[True]


@pytest.mark.parametrize(
    "name", ["llama3-8b-perlmutter", "toy", "llama3-70b", "mixtral-8x7b", "deepseek-16b"]
)
@pytest.mark.parametrize("provisioned", [True, False])
def test_a_folded_iteration_runs_exactly_like_the_whole(name: str, provisioned: bool) -> None:
    preset = PRESETS[name]
    if preset.gpus > 100:  # the same, with fewer replicas and layers in one
        data = 2 * preset.expert
        preset = preset.changed(
            data=data,
            gpus=preset.gpus // preset.data * data,
            microbatches=min(preset.microbatches, 4),
        )
    rail = Rail(reconfiguration_ms=7.0, provisioned=provisioned)
    folded, whole = (
        simulate(build(preset, fold=fold, by_layer=preset.gpus < 100), rail)
        for fold in (True, False)
    )
    assert (folded.iteration_ms, folded.undisturbed_ms) == (
        whole.iteration_ms,
        whole.undisturbed_ms,
    )
    assert folded.reconfigurations == whole.reconfigurations
    kept = Counter((round(one.length_ms, 6), one.before, one.after) for one in whole.windows)
    stands_for = folded.iteration.stands_for
    expected: Counter[tuple[float, str, str]] = Counter()
    for one in folded.windows:
        expected[round(one.length_ms, 6), one.before, one.after] += int(stands_for[one.rank])
    assert kept == expected


def test_the_log_is_bounded_and_everything_counted() -> None:
    iteration = build(PRESETS["llama3-8b-perlmutter"])
    whole, short = (simulate(iteration, AHEAD, messages=keep) for keep in (10_000, 5))
    assert (
        len(short.messages)
        == 20
        < short.messages_sent
        == whole.messages_sent
        == len(whole.messages)
    )
    assert set(short.messages) <= set(whole.messages)
    assert list(whole.messages) == sorted(whole.messages, key=lambda one: one.at_ms)


@pytest.mark.parametrize(
    ("rail", "says"),
    [
        (
            Rail(reconfiguration_ms=-1.0),
            "settings, field reconfiguration_ms: must be 0 to 1e+09 (got -1)",
        ),
        (Rail(link_up_ms=float("nan")), "settings, field link_up_ms: must be 0 to 1e+09 (got nan)"),
        (
            Rail(nic_gbps=0.0),
            "settings, field nic_gbps: must be greater than 0 and at most 1e9 (got 0)",
        ),
        (Rail(nic_ports=0), "settings, field nic_ports: must be at least 1 (got 0)"),
    ],
)
def test_a_rail_that_cannot_be_is_told_in_one_line(rail: Rail, says: str) -> None:
    with pytest.raises(InputError) as told:
        simulate(chain(1.0, 2.0), rail)
    assert str(told.value) == says
