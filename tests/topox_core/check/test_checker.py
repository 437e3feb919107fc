"""The independent checker: right schedules hold, and whatever is broken is named with its equation."""

import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from operator import itemgetter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, strategies as st

from tests.conftest import examples
from tests.refusal import refusal
from tests.topox_core.check.broken_schedules import (
    BROKEN,
    RIGHT,
    Made,
    Record,
    both_switches,
    broken,
    chosen,
    circuit,
    cluster,
    collective,
    compute,
    listed,
    made,
    moved,
    moving,
    one_transfer,
    put,
    row,
    said,
    shared,
    transfer,
    two_ports,
    with_delay,
)
from tests.topox_core.tdm.test_check import made as made_round
from topox_core.check.checker import check
from topox_core.check.demand import check_demand_plan
from topox_core.check.round import check_round
from topox_core.check.schedule_file import read_schedule
from topox_core.model.cluster import Cluster

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_schedule_holds(name: str) -> None:
    report = RIGHT[name]().checked()
    assert report.lines() == ()
    assert {"2", "3", "4", "5"} <= report.equations.keys()


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_schedule_is_rejected_by_the_constraint_it_breaks(name: str) -> None:
    maker, change, constraints = BROKEN[name]
    report = maker().checked(change)
    assert broken(report) == constraints, report.lines()
    assert all(
        str(violation).startswith(violation.constraint) and violation.item
        for violation in report.violations
    )


def test_every_constraint_has_a_schedule_that_breaks_it() -> None:
    right = [maker().checked() for maker in RIGHT.values()]
    wrong = [maker().checked(change) for maker, change, _ in BROKEN.values()]
    names = {constraint.name for report in right for constraint in report.constraints}
    assert set().union(*map(broken, wrong)) == names
    equations = {violation.equation for report in wrong for violation in report.violations}
    assert equations == {*map(str, range(2, 11)), "p_j", "physical", "lowering"}


def test_a_violation_names_equation_item_and_times() -> None:
    (line,) = one_transfer().checked(moved("g", -1.0)).lines()
    assert line == "precedence (eq. 5), task g: starts at 4 ms, before act ends at 5 ms"


def test_violations_are_counted_beyond_those_kept() -> None:
    tasks = [compute(f"f{i}", 0, 1.0) for i in range(300)]
    report = made(tasks, cluster(), {f"f{i}": (0.0, 1.0) for i in range(300)}).checked()
    assert len(report.violations) < report.violated == 299
    assert report.lines(3)[-1] == "and 296 more"


def test_a_result_without_a_schedule_holds_nothing() -> None:
    nothing = said(status="infeasible", makespan_ms=None, gap=None, tasks=[], circuits=[])
    assert "infeasible" in one_transfer().checked(nothing).lines()[0]


def test_the_model_asked_for_wins_over_the_result() -> None:
    assert shared().checked().ok
    for stated in ({}, {"share_circuits": True, "exclusive_devices": False, "any_port": True}):
        two_ports_each = {"ports_per_server": 2}
        report = shared().checked(
            chosen(**stated), model="physical", circuits="per-slot", cluster_changes=two_ports_each
        )
        assert broken(report) == {"in, one peer", "out, one peer", "device exclusivity"}
    assert moving().checked(model="paper").ok
    assert one_transfer().checked(chosen(cluster={"ports_per_server": 3}), model="paper").ok
    assert broken(moving().checked(circuits="continuous")) == {"continuity"}
    assert with_delay().checked(chosen(circuits="continuous"), model="paper").ok, (
        "the printed model charges nothing for a change"
    )


def test_durations_are_rounded_up_with_a_tolerance_of_the_last_digit() -> None:
    sizes = {"exact": 3.0000000000000004, "over": 3.001, "zero": 0.0, "least": 1e-12}
    tasks = [transfer(name, 0, 1, slots) for name, slots in sizes.items()]
    times = {"exact": (0.0, 3.0), "over": (3.0, 7.0), "zero": (7.0, 7.0), "least": (7.0, 8.0)}
    rows = [circuit(name, 0, 0, 1, *times[name]) for name in ("exact", "over", "least")]
    assert made(tasks, cluster(), times, rows).checked().lines() == ()
    late = made(tasks, cluster(latency_us=1.0), times, rows).checked()
    assert {v.item for v in late.violations if v.equation == "p_j"} == {"task exact", "task zero"}


def test_times_that_differ_in_their_last_digit_meet() -> None:
    on = cluster(ports=1, switches=1, room=1, slot_ms=0.1)
    times = {f"t{i}": (0.1 * i, 0.1 * i + 0.1) for i in range(40)}
    assert any(times[f"t{i}"][1] > times[f"t{i + 1}"][0] for i in range(39))
    tasks = [transfer(name, 0, 1, 0.1) for name in times]
    rows = [circuit(name, 0, 0, 1, *times[name]) for name in times]
    assert made(tasks, on, times, rows, tick_ms=0.1).checked().lines() == ()


def test_two_ports_that_the_result_does_not_name_are_found() -> None:
    nameless = two_ports()
    for r in nameless.record["circuits"]:
        r.pop("source_port"), r.pop("destination_port")
    assert nameless.checked().ok
    assert broken(nameless.checked(put("c", "circuits", setup_ms=2.5))) == {"reconfiguration"}
    one_port = nameless.checked(chosen(cluster={"ports_per_server": 1}))
    assert "out, one peer" in broken(one_port)


@pytest.mark.parametrize(
    ("settings_", "words"),
    [
        (
            {"cluster": {"ports_per_server": 3}},
            r"ports_per_server: must be a multiple of switches, 2 (got 3)",
        ),
        ({"model": "quantum"}, "settings, field model: must be one of physical, paper"),
        ({"circuits": 3}, "settings, field circuits"),
        ({"share_circuits": "no"}, "settings, field share_circuits: must be true or false"),
        ({"share_circuits": True}, "settings, field circuits: continuous circuits book real ports"),
        ({"rings": 0}, "settings, field rings: must be at least 1"),
        ({"strides": 3}, "settings, field strides: must be a list"),
        ({"tick": "fast"}, "settings, field tick"),
        ({"tick": float("nan")}, "settings, field tick"),
        ({"cluster": {"wheels": 4}}, "settings, field cluster.wheels: unknown key"),
        (
            {"cluster": {"port_gbps": -1}},
            r"settings, field cluster.port_gbps: must be from 1e-06 to 1e+12",
        ),
        ({"cluster": 7}, "settings, field cluster: must be a record"),
        ({"cluster": {"servers": 1}}, "names server 1, which the cluster lacks"),
    ],
)
def test_settings_that_make_no_sense_are_bad_input(settings_: dict[str, Any], words: str) -> None:
    assert words in refusal(one_transfer().checked, chosen(**settings_), file="r.schedule.json")


def as_bytes(change: Callable[[Record], object]) -> bytes:
    record = two_ports().record  # made anew every time
    change(record)
    return json.dumps(record).encode()


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\xff\xfea", "UTF-16"),
        (b"\x80", "not UTF-8"),
        (b"{", "not valid JSON at line 1"),
        (b"[1]", "must be one JSON object"),
        (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
        (gzip.compress(b"{}" * 100, mtime=0)[:-9], "gzip"),
        (as_bytes(lambda r: r.pop("format")), "field format: must be 'topox-schedule'"),
        (as_bytes(said(format="topox-cluster")), "this is a cluster file"),
        (as_bytes(said(version=3)), "field version: 3 is newer"),
        (as_bytes(said(clock="sundial")), "field clock: must be one of slots, continuous"),
        (as_bytes(said(effort="none")), "field effort: must be one of first, search, prove"),
        (as_bytes(said(chosen={"switching": "now"})), "field chosen.switching: must be one of"),
        (
            as_bytes(said(chosen={"ring": 2})),
            "field chosen.ring: unknown key (did you mean 'rings'?)",
        ),
        (as_bytes(said(makespan=7.0)), "field makespan: unknown key (did you mean 'makespan_ms'?)"),
        (as_bytes(put("a", begin_ms=0.0)), "task a, field begin_ms: unknown key"),
        (as_bytes(said(version=1, fixed={})), "save the result again"),
        (as_bytes(said(status="done")), "field status: must be one of"),
        (as_bytes(said(settings=None)), "field settings"),
        (as_bytes(said(makespan_ms="7")), "field makespan_ms: must be a finite number"),
        (as_bytes(said(bound_ms=float("nan"))), "field bound_ms: must be a finite number"),
        (as_bytes(said(tick_ms=0)), "field tick_ms: must be from 1e-09 to 1e+09 ms"),
        (as_bytes(lambda r: r.pop("tasks")), "field tasks: is missing"),
        (as_bytes(said(circuits={})), "field circuits: must be a list"),
        (as_bytes(said(tasks=[3])), "task number 0: must be an object"),
        (
            as_bytes(put("a", start_ms=float("nan"))),
            "task a, field start_ms: must be a finite number",
        ),
        (as_bytes(put("a", start_ms=10**400)), "task a, field start_ms: must be a number"),
        (as_bytes(put("a", start_ms=True)), "task a, field start_ms: must be a number"),
        (as_bytes(lambda r: row(r, "b").pop("end_ms")), "task b, field end_ms: is missing"),
        (as_bytes(lambda r: r["tasks"][1].update(id=4)), "task number 1, field id: must be text"),
        (
            as_bytes(lambda r: r["tasks"][1].update(id="")),
            "task number 1, field id: must be text of at least 1",
        ),
        (
            as_bytes(put("a", "circuits", switch=-1)),
            "circuit number 0 (of a), field switch: must be from 0 to",
        ),
        (as_bytes(put("a", "circuits", source=0.5)), "field source: must be a whole number"),
        (
            as_bytes(put("c", "circuits", source_port=-2)),
            "field source_port: must be from 0",
        ),
        (
            as_bytes(put("c", "circuits", source_port=[])),
            "field source_port: must be a whole number",
        ),
        (
            as_bytes(said(transfers=[listed("t", "a", 0, 1, 1.0) | {"dependencies": "ab"}])),
            "transfer t, field dependencies",
        ),
        (
            as_bytes(said(transfers=[listed("t", "a", 0, 1, 1.0) | {"dependencies": [1]}])),
            "transfer t, field dependencies",
        ),
    ],
)
def test_a_file_that_is_no_result_is_refused_in_one_line(data: bytes, words: str) -> None:
    line = refusal(read_schedule, data, "r.schedule.json")
    assert words in line and line.startswith("r.schedule.json")


def test_a_result_file_may_be_gzipped_and_may_leave_out_what_it_does_not_have() -> None:
    record = one_transfer().record
    assert read_schedule(gzip.compress(json.dumps(record).encode()), "r.schedule.json.gz") == record
    summary = record | {"status": "unknown", "makespan_ms": None}
    for rows in ("tasks", "transfers", "circuits"):
        del summary[rows]
    assert read_schedule(json.dumps(summary).encode()) == summary


def test_a_file_of_version_1_has_no_clock_and_is_read_as_slots() -> None:
    now = one_transfer()
    old = now.record | {"version": 1, "author": "a key that version 1 let pass"}
    del old["clock"], old["effort"]
    report = check(now.graph, now.cluster, read_schedule(json.dumps(old).encode()))
    assert report.ok and report.equations["4"]
    assert "4" not in now.checked(said(clock="continuous")).equations


MUTATIONS: dict[str, Callable[[Record, str, int], object]] = {
    "a task a slot earlier or later": lambda r, task, n: moved(task, 1.0 if n % 2 else -1.0)(r),
    "a row alone earlier or later": lambda r, task, n: row(r, task).update(
        start_ms=row(r, task)["start_ms"] + (0.25 if n % 2 else -0.25)
    ),
    "a longer task": lambda r, task, n: row(r, task).update(
        end_ms=row(r, task)["end_ms"] + 1.0 + n
    ),
    "a task dropped": lambda r, task, n: r["tasks"].remove(row(r, task)),
    "a task doubled": lambda r, task, n: r["tasks"].append(dict(row(r, task))),
    "a circuit dropped": lambda r, task, n: r["circuits"].pop(n % 2),
    "a circuit on the other switch": lambda r, task, n: r["circuits"][n % 2].update(
        switch=1 - n % 2
    ),
    "a circuit elsewhere": lambda r, task, n: r["circuits"][n % 2].update(destination=2 + n % 2),
    "a circuit cut short": lambda r, task, n: r["circuits"][n % 2].update(end_ms=4.0),
    "a circuit for another": lambda r, task, n: r["circuits"][n % 2].update(task=task + "x"),
    "another makespan": lambda r, task, n: r.update(makespan_ms=r["makespan_ms"] - 0.25 - n),
    "slower ports": lambda r, task, n: r["settings"].update(cluster={"port_gbps": 10.0 + n}),
    "other ids": lambda r, task, n: row(r, task).update(id=f"{task}{n}"),
}


@given(st.sampled_from(sorted(MUTATIONS)), st.sampled_from(["f", "a", "b", "g"]), st.integers(0, 9))
@examples(150)
def test_nothing_in_a_tight_schedule_can_change_unnoticed(mutation: str, task: str, n: int) -> None:
    last_moved_later = mutation == "a task a slot earlier or later" and task == "g" and n % 2 == 1
    report = both_switches().checked(lambda record: MUTATIONS[mutation](record, task, n))
    assert report.ok == last_moved_later


Slotwise = tuple[Made, dict[str, bool]]


def slot_by_slot(made_: Made, on: Cluster, share: bool, any_port: bool) -> dict[str, bool]:
    """Eqs 6 to 10 as they stand, slot by slot, from the rows of the result."""
    times = {r["id"]: (int(r["start_ms"]), int(r["end_ms"])) for r in made_.record["tasks"]}
    pairs = {task.id: (task.source, task.destination) for task in made_.graph.tasks}
    rows = [
        (
            r["task"],
            r["switch"],
            (r["source"], r["destination"]),
            int(r["start_ms"]),
            int(r["end_ms"]),
        )
        for r in made_.record["circuits"]
    ]
    k = 1 if any_port else on.ports_per_server // on.switches
    holds = dict.fromkeys(("6", "7", "8", "9", "10"), True)
    for name, _, pair, since, until in rows:
        holds["6"] &= pair == pairs[name] and times[name][0] <= since < until <= times[name][1]
    for t in range(12):
        up = [(switch, *pair) for _, switch, pair, since, until in rows if since <= t < until]
        a = sorted(set(up)) if share else up
        for name, (start, end) in times.items():
            if start <= t < end:
                holds["6"] &= any(
                    n == name and pair == pairs[name] and s <= t < u for n, _, pair, s, u in rows
                )
        for r in range(on.switches):
            holds["7"] &= sum(c[0] == r for c in a) <= on.ports_per_switch
        for server in range(on.servers):
            out, into = sum(c[1] == server for c in a), sum(c[2] == server for c in a)
            used = (out + into,) if on.duplex == "half" else (out, into)
            holds["8"] &= max(used) <= on.ports_per_server
            for r in range(on.switches):
                holds["9"] &= sum(c[0] == r and c[2] == server for c in a) <= k
                holds["10"] &= sum(c[0] == r and c[1] == server for c in a) <= k
    return holds


@st.composite
def random_slots(draw: st.DrawFn) -> Slotwise:
    sizes = st.tuples(st.integers(2, 4), st.integers(1, 3), st.integers(1, 4))
    servers, switches, room = draw(sizes)
    any_port, share = draw(st.booleans()), draw(st.booleans())
    ports = draw(st.integers(1, 4)) if any_port else switches * draw(st.integers(1, 2))
    on = cluster(servers, ports, switches, room, duplex=draw(st.sampled_from(["full", "half"])))
    tasks, times, rows = [], {}, []
    for i in range(draw(st.integers(1, 7))):
        source, step = draw(st.integers(0, servers - 1)), draw(st.integers(1, servers - 1))
        start, slots = draw(st.integers(0, 4)), draw(st.integers(1, 4))
        destination = (source + step) % servers
        tasks.append(transfer(f"t{i}", source, destination, slots))
        times[f"t{i}"] = (float(start), float(start + slots))
        cut, odd = draw(st.integers(start, start + slots)), draw(st.integers(0, 29))
        pieces = ((start, cut), (cut, start + slots + (odd == 0)))
        for since, until in [piece for piece in pieces if piece[0] < piece[1]][odd == 1 :]:
            switch, end = draw(st.integers(0, switches - 1)), (destination + (odd == 2)) % servers
            rows.append(circuit(f"t{i}", switch, source, end, float(since), float(until)))
    result = made(
        tasks, on, times, rows, circuits="per-slot", share_circuits=share, any_port=any_port
    )
    return result, slot_by_slot(result, on, share, any_port)


@given(random_slots())
@examples(250)
def test_sweeps_agree_with_counting_slot_by_slot(case: Slotwise) -> None:
    result, holds = case
    verdicts = result.checked().equations
    assert {equation: verdicts[equation] for equation in holds} == holds


@given(st.integers(0, 2**32 - 1))
@examples(60)
def test_waiting_passes_through_chains_of_collectives(seed: int) -> None:
    """Against pairs written out: whatever waits for a collective that moves nothing waits for all that this waited for."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 12))
    joins = draw.random(n) < 0.5
    waits = {i: [j for j in range(i) if draw.random() < 0.3] for i in range(n)}
    tasks = [
        collective(f"t{i}", "all_reduce", (0, 1), 1.0, *(f"t{j}" for j in waits[i]))
        if joins[i]
        else compute(f"t{i}", i, 1.0, *(f"t{j}" for j in waits[i]))
        for i in range(n)
    ]
    start = {i: float(draw.integers(0, 6)) for i in range(n) if not joins[i]}
    behind: dict[int, set[int]] = {}
    for i in range(n):
        behind[i] = {e for j in waits[i] for e in (behind[j] if joins[j] else {j})}
    expected = all(start[i] >= start[j] + 1.0 for i in start for j in behind[i])
    order = draw.permutation(n)
    result = made(
        [tasks[i] for i in order],
        cluster(servers=12),
        {f"t{i}": (s, s + 1.0) for i, s in start.items()},
        all_reduce_on_network=False,
    )
    assert result.checked().equations["5"] == expected


@given(st.integers(0, 2**32 - 1))
@examples(200)
def test_dark_time_agrees_with_walking_each_port_through_the_iteration(seed: int) -> None:
    draw = np.random.default_rng(seed)
    half, k, delay = draw.random() < 0.4, int(draw.integers(1, 3)), float(draw.choice([1.0, 1.5]))
    on = cluster(3, k, 1, reconfiguration_ms=delay, duplex="half" if half else "full")
    tasks, times, rows = [], {}, []
    for name in (f"t{i}" for i in range(draw.integers(2, 7))):
        source, step, start, slots = draw.integers([0, 1, 0, 1], [3, 3, 14, 3]).tolist()
        pair, dark = (source, (source + step) % 3), float(draw.choice([0.0, delay]))
        ports, times[name] = (
            tuple(draw.integers(0, k, 2).tolist()),
            (1.0 * start, 1.0 * start + slots),
        )
        tasks.append(transfer(name, *pair, slots))
        rows.append(circuit(name, 0, *pair, *times[name], max(0.0, start - dark), ports))
    held: dict[tuple[int, int, bool], list[Record]] = {}
    for r in rows:
        held.setdefault((r["source"], r["source_port"], not half), []).append(r)
        held.setdefault((r["destination"], r["destination_port"], False), []).append(r)
    in_turn = [
        pair
        for on_port in held.values()
        for pair in pairwise(sorted(on_port, key=itemgetter("setup_ms", "end_ms")))
    ]
    clash = any(last["end_ms"] > this["setup_ms"] for last, this in in_turn)
    ends = itemgetter("source", "destination", "source_port", "destination_port")
    unpaid = any(
        this["start_ms"] - this["setup_ms"] < delay and ends(last) != ends(this)
        for last, this in in_turn
    )
    found = broken(made(tasks, on, times, rows).checked())
    assert ("port bookings" in found) == clash
    assert clash or ("reconfiguration" in found) == unpaid


def test_the_checker_loads_no_code_of_the_engines() -> None:
    program = "import sys, topox_core.check.checker; print(*sys.modules)"
    loaded = subprocess.check_output([sys.executable, "-c", program], cwd=ROOT, text=True).split()
    engines = (
        "topox_core.schedule",
        "topox_core.model.lowering.lowering",
        "topox_core.model.lowering.algorithm_choice",
    )
    assert "topox_core.check.plan" in loaded
    assert not [module for module in loaded if module.startswith(engines)]


@pytest.mark.parametrize(("into_pod_0", "ok"), [(1, True), (2, False)])
def test_a_half_duplex_link_between_pods_takes_a_port_in_each_of_them(
    into_pod_0: int, ok: bool
) -> None:
    answer = made_round(1, "the drafts' four phases")
    links = np.zeros_like(answer.links)
    links[0, 0, 0, 1], links[0, 0, 2, 0] = answer.jobs.network.ports_per_pod - 1, into_pod_0
    assert ("ports of a pod" not in broken(check_round(replace(answer, links=links)))) == ok


@pytest.mark.parametrize(("start_ms", "ok"), [(7.0, True), (6.0, False), (2.0, False)])
def test_only_the_first_set_up_of_a_demand_plan_may_be_free(start_ms: float, ok: bool) -> None:
    first = {"circuits": [[1, 2]], "start_ms": 0.0, "duration_ms": 2.0}
    second = {"circuits": [[2, 1]], "start_ms": start_ms, "duration_ms": 1.0}
    plan = {"switches": [[first, second]], "delay_ms": 5.0, "first_free": True}
    demand_ms = np.array([[0.0, 2.0], [1.0, 0.0]])
    report = check_demand_plan(demand_ms, plan | {"makespan_ms": start_ms + 1.0})
    assert broken(report) == (set() if ok else {"set-ups"})
