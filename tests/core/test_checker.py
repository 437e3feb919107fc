"""The independent checker: right schedules hold, and whatever is broken is named with its equation."""

from __future__ import annotations

import ast
import copy
import gzip
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.broken_schedules import (
    RIGHT,
    SLOT_BYTES,
    Made,
    Record,
    all_to_all,
    both_switches,
    broken,
    chain,
    circuit,
    claimed,
    cluster,
    collective,
    compute,
    compute_only,
    half_duplex,
    listed,
    made,
    moved,
    moving,
    off_the_network,
    one_transfer,
    put,
    ring,
    ring_in_lock_steps,
    row,
    shared,
    transfer,
    tree,
    two_ports,
    with_delay,
    without,
)
from topox_core.check.checker import check
from topox_core.check.schedule_file import read_schedule
from topox_core.cluster import Cluster
from topox_core.errors import InputError

ROOT = Path(__file__).resolve().parents[2]


def added(of: str, *rows: Record) -> Callable[[Record], None]:
    def change(record: Record) -> None:
        record[of].extend(copy.deepcopy(rows))
        claimed(record)
    return change


def said(**values: Any) -> Callable[[Record], None]:
    return lambda record: record.update(values)


def chosen(**values: Any) -> Callable[[Record], None]:
    return lambda record: record["settings"].update(values)


def both(*changes: Callable[[Record], object]) -> Callable[[Record], None]:
    def change(record: Record) -> None:
        for one in changes:
            one(record)
    return change


def third_at_once(room: int = 8) -> Made:
    """Three circuits out of server 0 and three into server 3 at once, one on each of three switches."""
    pairs = {"a": (0, 1), "b": (0, 2), "c": (0, 3), "d": (1, 3), "e": (2, 3)}
    switch = {"a": 0, "b": 1, "c": 2, "d": 0, "e": 1}
    return made([transfer(name, *pair, 1) for name, pair in pairs.items()], cluster(ports=3, switches=3, room=room),
                {name: (0.0, 1.0) for name in pairs}, [circuit(name, switch[name], *pair, 0.0, 1.0) for name, pair in pairs.items()],
                model="paper")


@pytest.mark.parametrize("name", RIGHT)
def test_a_right_schedule_holds(name: str) -> None:
    report = RIGHT[name]().checked()
    assert report.lines() == ()
    assert report.ok
    assert {"2", "3", "4", "5"} <= report.equations.keys()


@pytest.mark.parametrize("kind", ["all_gather", "reduce_scatter"])
def test_one_pass_moves_half_of_what_an_all_reduce_moves(kind: str) -> None:
    assert ring(kind).checked().ok
    assert "collectives move their bytes" in broken(ring(kind).checked(put("g/0", "transfers", size_bytes=4 * SLOT_BYTES)))


# Each: a right schedule, a change, and exactly the constraints that it breaks.
BROKEN: dict[str, tuple[Callable[[], Made], Callable[[Record], object], set[str]]] = {
    # eq. 2
    "makespan is not the last end": (one_transfer, said(makespan_ms=6.0, bound_ms=6.0), {"makespan, bound and gap"}),
    "bound above makespan": (one_transfer, said(bound_ms=8.0), {"makespan, bound and gap"}),
    "optimal with a bound below": (one_transfer, said(bound_ms=6.0, gap=1 / 7), {"makespan, bound and gap"}),
    "gap of nothing": (one_transfer, said(status="feasible", bound_ms=6.0, gap=0.0), {"makespan, bound and gap"}),
    "infeasible with a schedule": (one_transfer, said(status="infeasible"), {"makespan, bound and gap"}),
    # eq. 3
    "task left out": (one_transfer, both(without("g"), claimed), {"one start"}),
    "listed transfer left out": (ring, without("g/1"), {"one start", "circuit for every transfer"}),
    "task twice": (one_transfer, added("tasks", {"id": "f", "start_ms": 0.0, "end_ms": 2.0}), {"one start"}),
    "task of no graph": (one_transfer, added("tasks", {"id": "x", "start_ms": 0.0, "end_ms": 2.0}), {"one start"}),
    "start before the iteration": (one_transfer, moved("f", -1.0), {"one start"}),
    # eq. 4
    "transfer off the slot": (one_transfer, both(moved("act", 0.5), moved("g", 1.0)), {"start on the clock"}),
    "compute off the tick": (compute_only, both(moved("f", 0.0), moved("g", 0.1)), {"start on the clock"}),
    "tick divides no slot": (one_transfer, said(tick_ms=0.3), {"start on the clock", "duration"}),
    "tick not the one asked for": (one_transfer, chosen(tick=0.5), {"start on the clock"}),
    "tick longer than the slot": (one_transfer, said(tick_ms=2.0), {"start on the clock"}),
    "slot not the cluster's": (one_transfer, said(slot_ms=2.0, tick_ms=2.0), {"start on the clock"}),
    "circuit moves inside a slot": (moving, both(
        lambda r: r["circuits"][0].update(end_ms=2.5), lambda r: r["circuits"][1].update(start_ms=2.5, setup_ms=2.5),
        moved("b", 1.0), said(makespan_ms=5.0, bound_ms=5.0)), {"start on the clock"}),
    # p_j
    "compute too short": (one_transfer, both(put("f", end_ms=1.0)), {"duration"}),
    "transfer not rounded up to slots": (one_transfer, both(put("act", end_ms=4.4), put("act", "circuits", end_ms=4.4)),
                                         {"duration", "start on the clock"}),
    "transfer too long": (one_transfer, both(put("act", end_ms=6.0), put("act", "circuits", end_ms=6.0), moved("g", 1.0)), {"duration"}),
    "barrier that lasts": (compute_only, both(put("join", end_ms=2.25), moved("u", 0.25)), {"duration"}),
    "duration below zero": (off_the_network, put("h", start_ms=3.0, end_ms=2.0), {"duration"}),
    "port speed overridden": (one_transfer, chosen(cluster={"port_gbps": 50.0}), {"duration"}),
    # eq. 5
    "before its predecessor ends": (one_transfer, moved("g", -1.0), {"precedence"}),
    "transfer before its predecessor ends": (one_transfer, moved("act", -1.0), {"precedence"}),
    "ring before its slowest member": (ring, moved("g/1", -1.0), {"precedence"}),
    "update before the ring ends": (ring, moved("u", -1.0), {"precedence"}),
    "through collectives that move nothing": (off_the_network, both(without("h"), moved("u", -1.0)), {"precedence"}),
    "lock step before the data arrives": (ring_in_lock_steps, both(moved("g/s1/0", -1.0), moved("g/s0/0", 1.0)), {"precedence"}),
    "collective's row begins late": (off_the_network, added("tasks", {"id": "g", "start_ms": 2.0, "end_ms": 3.0}), {"precedence"}),
    "collective's row ends early": (ring, added("tasks", {"id": "g", "start_ms": 3.0, "end_ms": 5.0}), {"precedence"}),
    "collective's row begins after its transfers": (ring, added("tasks", {"id": "g", "start_ms": 4.0, "end_ms": 7.0}), {"precedence"}),
    # eq. 6
    "no circuit": (moving, without("b", "circuits"), {"circuit for every transfer"}),
    "circuit with a hole": (moving, lambda r: r["circuits"][1].update(start_ms=3.0, setup_ms=3.0), {"circuit for every transfer"}),
    "circuit the other way": (moving, put("b", "circuits", source=3, destination=2), {"circuit for every transfer"}),
    "circuit that carries nothing": (moving, added("circuits", circuit("b", 0, 2, 3, 2.0, 2.0)), {"circuit for every transfer"}),
    "circuit beyond its transfer": (moving, put("b", "circuits", start_ms=1.0, setup_ms=1.0),
                                    {"circuit for every transfer", "switch capacity"}),
    "circuit of no task": (moving, added("circuits", circuit("x", 1, 2, 3, 0.0, 1.0)), {"circuit for every transfer"}),
    "circuit of a compute task": (one_transfer, added("circuits", circuit("f", 1, 2, 3, 0.0, 1.0)), {"circuit for every transfer"}),
    "circuit that carries before its set-up": (moving, put("b", "circuits", setup_ms=3.0), {"circuit for every transfer"}),
    # eq. 7
    "switch too full": (moving, lambda r: r["circuits"][1].update(switch=0), {"switch capacity"}),
    "dark circuits take room too": (moving, put("b", "circuits", setup_ms=1.0), {"switch capacity"}),
    "switch that is not there": (moving, put("b", "circuits", switch=2), {"switch capacity"}),
    # eq. 8
    "more circuits than ports": (third_at_once, chosen(cluster={"ports_per_server": 2}), {"ports"}),
    "half duplex counts both ways": (half_duplex, both(chosen(cluster={"ports_per_server": 1}, model="paper", circuits="per-slot")),
                                     {"ports"}),
    # eqs 9 and 10
    "two into a server on one switch": (third_at_once, lambda r: r["circuits"][3].update(switch=2), {"in, one peer"}),
    "two out of a server on one switch": (third_at_once, lambda r: r["circuits"][0].update(switch=2), {"out, one peer"}),
    "the same pair twice on one switch": (both_switches, put("b", "circuits", switch=0), {"in, one peer", "out, one peer"}),
    "shared where each needs its own": (shared, chosen(share_circuits=False), {"ports", "in, one peer", "out, one peer"}),
    # physical
    "two tasks on a device": (compute_only, both(moved("b", -0.25), moved("f", 0.0)), {"device exclusivity", "precedence"}),
    "devices of the printed model": (shared, chosen(exclusive_devices=True), {"device exclusivity"}),
    "moving where it must stay": (moving, chosen(circuits="continuous"), {"continuity"}),
    "circuit gone before its transfer ends": (one_transfer, put("act", "circuits", end_ms=4.0),
                                              {"continuity", "circuit for every transfer"}),
    "one port for two circuits": (two_ports, put("b", "circuits", source_port=0), {"port bookings", "reconfiguration"}),
    "port that is not there": (two_ports, put("b", "circuits", destination_port=2), {"port bookings"}),
    "dark time too short": (with_delay, put("other", "circuits", setup_ms=4.0), {"reconfiguration"}),
    "set up before the iteration": (with_delay, put("a", "circuits", setup_ms=-0.5), {"reconfiguration"}),
    "set up while the port still carries": (with_delay, put("other", "circuits", setup_ms=2.5),
                                            {"port bookings", "out, one peer", "ports"}),
    "another circuit in between": (two_ports, put("c", "circuits", setup_ms=3.0), {"reconfiguration"}),
    "delay without ports to pay it": (moving, chosen(cluster={"reconfiguration_ms": 0.5}), {"reconfiguration"}),
    "a port both ways at once": (half_duplex, put("in", "circuits", switch=0), {"one way a port", "port bookings"}),
    # lowering
    "ring left open": (ring, put("g/2", "transfers", destination=1), {"collectives move their bytes", "circuit for every transfer"}),
    "bytes that differ on the ring": (ring, put("g/2", "transfers", size_bytes=3.5 * SLOT_BYTES), {"collectives move their bytes"}),
    "half of the bytes": (ring, lambda r: [t.update(size_bytes=3.5 * SLOT_BYTES) for t in r["transfers"]], {"collectives move their bytes"}),
    "a member leaves the ring": (ring, both(without("g/2"), without("g/2", "transfers"), without("g/2", "circuits")),
                                 {"collectives move their bytes"}),
    "no transfers": (ring, both(*[without(f"g/{i}", of) for i in range(3) for of in ("tasks", "transfers", "circuits")], moved("u", -4.0)),
                     {"collectives move their bytes"}),
    "too few rings": (ring, chosen(rings=2), {"collectives move their bytes"}),
    "another stride than chosen": (ring, chosen(strides=[2]), {"collectives move their bytes"}),
    "all-reduce on the network after all": (ring, chosen(all_reduce_on_network=False), {"collectives move their bytes"}),
    "transfer waits for too little": (ring, put("g/0", "transfers", dependencies=["b0"]), {"collectives move their bytes"}),
    "transfer waits for nobody knows what": (ring, put("g/0", "transfers", dependencies=["b0", "b1", "b2", "x"]), {"collectives move their bytes"}),
    "transfer of a collective not there": (ring, put("g/0", "transfers", collective="x"), {"collectives move their bytes"}),
    "transfer of a task that is none": (ring, put("g/0", "transfers", collective="u"), {"collectives move their bytes"}),
    "transfer listed twice": (ring, lambda r: r["transfers"].append(dict(r["transfers"][0])), {"collectives move their bytes", "one start"}),
    "lock step that waits for no arrival": (ring_in_lock_steps, put("g/s1/0", "transfers", dependencies=["g/s0/0"]),
                                            {"collectives move their bytes"}),
    "lock steps all at once": (ring_in_lock_steps, lambda r: [t.update(dependencies=[]) for t in r["transfers"]],
                               {"collectives move their bytes"}),
    "pair left out": (all_to_all, both(without("x/0-1"), without("x/0-1", "transfers"), without("x/0-1", "circuits")),
                      {"collectives move their bytes"}),
    "pair with less than its share": (all_to_all, put("x/0-1", "transfers", size_bytes=0.5 * SLOT_BYTES), {"collectives move their bytes"}),
    "chain cut": (chain, put("w/1/0", "transfers", source=2, destination=0),
                  {"collectives move their bytes", "circuit for every transfer"}),
    "chain from another root": (chain, both(put("w/1/2", "transfers", source=1, destination=2), put("w/1/2", "circuits", source=1, destination=2)),
                                {"collectives move their bytes"}),
    "tree that sends what it does not have": (tree, put("w/3", "transfers", dependencies=[]), {"collectives move their bytes"}),
    "tree that forgets a member": (tree, both(put("w/3", "transfers", destination=2), put("w/3", "circuits", destination=2)),
                                   {"collectives move their bytes", "in, one peer", "port bookings"}),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_schedule_is_rejected_by_the_constraint_it_breaks(name: str) -> None:
    maker, change, constraints = BROKEN[name]
    report = maker().checked(change)
    assert broken(report) == constraints, report.lines()
    assert not report.ok
    assert all(str(violation).startswith(violation.constraint) and violation.item for violation in report.violations)


def test_every_constraint_has_a_schedule_that_breaks_it() -> None:
    names = {constraint.name for maker in RIGHT.values() for constraint in maker().checked().constraints}
    assert set.union(*(constraints for _, _, constraints in BROKEN.values())) == names
    equations = {v.equation for maker, change, _ in BROKEN.values() for v in maker().checked(change).violations}
    assert equations == {*map(str, range(2, 11)), "p_j", "physical", "lowering"}


def test_a_violation_names_equation_item_and_times() -> None:
    (line,) = one_transfer().checked(moved("g", -1.0)).lines()
    assert line == "precedence (eq. 5), task g: starts at 4 ms, before act ends at 5 ms"


def test_violations_are_counted_beyond_those_kept() -> None:
    tasks = [compute(f"f{i}", 0, 1.0) for i in range(300)]
    report = made(tasks, cluster(), {f"f{i}": (0.0, 1.0) for i in range(300)}).checked()
    assert report.violated == 299
    assert len(report.violations) < 299
    assert report.lines(3)[-1] == "and 296 more"


def test_a_result_without_a_schedule_holds_nothing() -> None:
    report = one_transfer().checked(said(status="infeasible", makespan_ms=None, gap=None, tasks=[], circuits=[]))
    assert not report.ok
    assert "infeasible" in report.lines()[0]


def test_the_model_asked_for_wins_over_the_result() -> None:
    assert shared().checked().ok
    assert broken(shared().checked(model="physical", circuits="per-slot", cluster_changes={"ports_per_server": 2})) == {
        "in, one peer", "out, one peer", "device exclusivity"}
    assert moving().checked(model="paper").ok
    assert broken(moving().checked(circuits="continuous")) == {"continuity"}
    assert with_delay().checked(model="paper").ok, "the printed model charges nothing for a change"


def test_durations_are_rounded_up_with_a_tolerance_of_the_last_digit() -> None:
    sizes = {"exact": 3.0000000000000004, "over": 3.001, "zero": 0.0}
    tasks = [transfer(name, 0, 1, slots) for name, slots in sizes.items()]
    times = {"exact": (0.0, 3.0), "over": (3.0, 7.0), "zero": (7.0, 7.0)}
    rows = [circuit(name, 0, 0, 1, *times[name]) for name in ("exact", "over")]
    assert made(tasks, cluster(), times, rows).checked().lines() == ()
    late = made(tasks, cluster(latency_us=1.0), times, rows).checked()
    assert {v.item for v in late.violations if v.equation == "p_j"} == {"task exact", "task zero"}


def test_two_ports_that_the_result_does_not_name_are_found() -> None:
    def nameless(record: Record) -> None:
        for r in record["circuits"]:
            del r["source_port"], r["destination_port"]
    assert two_ports().checked(nameless).ok
    assert broken(two_ports().checked(both(nameless, put("c", "circuits", setup_ms=2.5)))) == {"reconfiguration"}
    assert "out, one peer" in broken(two_ports().checked(both(nameless, chosen(cluster={"ports_per_server": 1})))) 


def test_uneven_ports_need_the_printed_model() -> None:
    with pytest.raises(InputError, match=r"ports_per_server: must be a multiple of switches, 2 \(got 3\)"):
        one_transfer().checked(chosen(cluster={"ports_per_server": 3}))
    assert one_transfer().checked(chosen(cluster={"ports_per_server": 3}), model="paper").ok


@pytest.mark.parametrize(("settings_", "words"), [
    ({"model": "quantum"}, "settings, field model: must be one of physical, paper"),
    ({"circuits": 3}, "settings, field circuits"),
    ({"share_circuits": "no"}, "settings, field share_circuits: must be true or false"),
    ({"share_circuits": True}, "settings, field circuits: continuous circuits book real ports"),
    ({"rings": 0}, "settings, field rings: must be a whole number of at least 1"),
    ({"strides": 3}, "settings, field strides: must be a list"),
    ({"tick": "fast"}, "settings, field tick"),
    ({"tick": float("nan")}, "settings, field tick"),
    ({"cluster": {"wheels": 4}}, r"settings, field cluster\.wheels: unknown key"),
    ({"cluster": {"port_gbps": -1}}, r"settings, field cluster\.port_gbps: must be greater than 0"),
    ({"cluster": 7}, "settings, field cluster: must be a record"),
    ({"cluster": {"servers": 1}}, "names server 1, which the cluster lacks"),
])
def test_settings_that_make_no_sense_are_bad_input(settings_: dict[str, Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        one_transfer().checked(chosen(**settings_), file="r.schedule.json")


def as_bytes(change: Callable[[Record], object]) -> bytes:
    record = copy.deepcopy(two_ports().record)
    change(record)
    return json.dumps(record).encode()


@pytest.mark.parametrize(("data", "words"), [
    (b"", "is empty"),
    (b"\xff\xfea", "UTF-16"),
    (b"\x80", "not UTF-8"),
    (b"{", "not valid JSON at line 1"),
    (b"[1]", "must be one JSON object"),
    (b'{"a":' * 10_000 + b"1" + b"}" * 10_000, "nested too deeply"),
    (gzip.compress(b"{}" * 100)[:-9], "gzip"),
    (as_bytes(lambda r: r.pop("format")), "field format: must be 'topox-schedule'"),
    (as_bytes(said(format="topox-cluster")), "this is a cluster file"),
    (as_bytes(said(version=2)), "field version: 2 is newer"),
    (as_bytes(said(status="done")), "field status: must be one of"),
    (as_bytes(said(settings=None)), "field settings"),
    (as_bytes(said(makespan_ms="7")), "field makespan_ms: must be a finite number"),
    (as_bytes(said(bound_ms=float("nan"))), "field bound_ms: must be a finite number"),
    (as_bytes(said(tick_ms=0)), "field tick_ms: must be greater than 0"),
    (as_bytes(lambda r: r.pop("tasks")), "field tasks: is missing"),
    (as_bytes(said(circuits={})), "field circuits: must be a list"),
    (as_bytes(said(tasks=[3])), "task number 0: must be an object"),
    (as_bytes(put("a", start_ms=float("nan"))), "task a, field start_ms: must be a finite number"),
    (as_bytes(put("a", start_ms=10**400)), "task a, field start_ms: must be a finite number"),
    (as_bytes(put("a", start_ms=True)), "task a, field start_ms: must be a finite number"),
    (as_bytes(lambda r: row(r, "b").pop("end_ms")), "task b, field end_ms: is missing"),
    (as_bytes(lambda r: r["tasks"][1].update(id=4)), "task number 1, field id: must be an id"),
    (as_bytes(lambda r: r["tasks"][1].update(id="")), "field id: must be an id"),
    (as_bytes(put("a", "circuits", switch=-1)), r"circuit number 0 \(of a\), field switch: must be a whole number from 0"),
    (as_bytes(put("a", "circuits", source=0.5)), "field source: must be a whole number"),
    (as_bytes(put("c", "circuits", source_port=-2)), "field source_port: must be a whole number"),
    (as_bytes(put("c", "circuits", source_port=[])), "field source_port: must be a whole number"),
    (as_bytes(lambda r: r["transfers"].append(listed("t", "a", 0, 1, 1.0) | {"dependencies": "ab"})), "transfer t, field dependencies"),
    (as_bytes(lambda r: r["transfers"].append(listed("t", "a", 0, 1, 1.0) | {"dependencies": [1]})), "transfer t, field dependencies"),
])
def test_a_file_that_is_no_result_is_refused_in_one_line(data: bytes, words: str) -> None:
    with pytest.raises(InputError, match=words) as caught:
        read_schedule(data, "r.schedule.json")
    assert str(caught.value).startswith("r.schedule.json")
    assert "\n" not in str(caught.value)


def test_a_result_file_may_be_gzipped_and_may_leave_out_what_it_does_not_have() -> None:
    record = one_transfer().record
    assert read_schedule(gzip.compress(json.dumps(record).encode()), "r.schedule.json.gz") == record
    summary = {k: v for k, v in record.items() if k not in ("tasks", "transfers", "circuits")} | {"status": "unknown", "makespan_ms": None}
    assert read_schedule(json.dumps(summary).encode()) == summary


MUTATIONS: dict[str, Callable[[Record, str, int], object]] = {
    "a task a slot earlier or later": lambda r, task, n: moved(task, 1.0 if n % 2 else -1.0)(r),
    "a row alone earlier or later": lambda r, task, n: row(r, task).update(start_ms=row(r, task)["start_ms"] + (0.25 if n % 2 else -0.25)),
    "a longer task": lambda r, task, n: row(r, task).update(end_ms=row(r, task)["end_ms"] + 1.0 + n),
    "a task dropped": lambda r, task, n: r["tasks"].remove(row(r, task)),
    "a task doubled": lambda r, task, n: r["tasks"].append(dict(row(r, task))),
    "a circuit dropped": lambda r, task, n: r["circuits"].pop(n % 2),
    "a circuit on the other switch": lambda r, task, n: r["circuits"][n % 2].update(switch=1 - n % 2),
    "a circuit elsewhere": lambda r, task, n: r["circuits"][n % 2].update(destination=2 + n % 2),
    "a circuit cut short": lambda r, task, n: r["circuits"][n % 2].update(end_ms=4.0),
    "a circuit for another": lambda r, task, n: r["circuits"][n % 2].update(task=task + "x"),
    "another makespan": lambda r, task, n: r.update(makespan_ms=r["makespan_ms"] - 0.25 - n),
    "slower ports": lambda r, task, n: r["settings"].update(cluster={"port_gbps": 10.0 + n}),
    "other ids": lambda r, task, n: row(r, task).update(id=f"{task}{n}"),
}


@given(st.sampled_from(sorted(MUTATIONS)), st.sampled_from(["f", "a", "b", "g"]), st.integers(0, 9))
@settings(max_examples=150, deadline=None)
def test_nothing_in_a_tight_schedule_can_change_unnoticed(mutation: str, task: str, n: int) -> None:
    def change(record: Record) -> None:
        MUTATIONS[mutation](record, task, n)
    last_moved_later = mutation == "a task a slot earlier or later" and task == "g" and n % 2 == 1
    assert both_switches().checked(change).ok == last_moved_later


Slotwise = tuple[Made, dict[str, bool]]


def slot_by_slot(made_: Made, on: Cluster, share: bool, any_port: bool) -> dict[str, bool]:
    """Eqs 6 to 10 as they stand, slot by slot, from the rows of the result."""
    times = {r["id"]: (int(r["start_ms"]), int(r["end_ms"])) for r in made_.record["tasks"]}
    pairs = {task.id: (task.source, task.destination) for task in made_.graph.tasks}
    rows = [(r["task"], r["switch"], (r["source"], r["destination"]), int(r["start_ms"]), int(r["end_ms"])) for r in made_.record["circuits"]]
    k = 1 if any_port else on.ports_per_server // on.switches
    holds = dict.fromkeys("6 7 8 9 10".split(), True)
    for name, _, pair, since, until in rows:
        holds["6"] &= pair == pairs[name] and times[name][0] <= since < until <= times[name][1]
    for t in range(12):
        up = [(switch, *pair) for _, switch, pair, since, until in rows if since <= t < until]
        a = sorted(set(up)) if share else up
        for name, (start, end) in times.items():
            if start <= t < end:
                holds["6"] &= any(n == name and pair == pairs[name] and s <= t < u for n, _, pair, s, u in rows)
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
    servers, switches, any_port = draw(st.integers(2, 4)), draw(st.integers(1, 3)), draw(st.booleans())
    ports = draw(st.integers(1, 4)) if any_port else switches * draw(st.integers(1, 2))
    share = draw(st.booleans())
    on = cluster(servers, ports, switches, draw(st.integers(1, 4)), duplex=draw(st.sampled_from(["full", "half"])))
    tasks, times, rows = [], {}, []
    for i in range(draw(st.integers(1, 7))):
        source, step = draw(st.integers(0, servers - 1)), draw(st.integers(1, servers - 1))
        start, slots = draw(st.integers(0, 4)), draw(st.integers(1, 4))
        destination = (source + step) % servers
        tasks.append(transfer(f"t{i}", source, destination, slots))
        times[f"t{i}"] = (float(start), float(start + slots))
        cut = draw(st.integers(start, start + slots))
        odd = draw(st.integers(0, 29))
        pieces = [(since, until) for since, until in ((start, cut), (cut, start + slots + (odd == 0))) if since < until]
        for since, until in pieces[odd == 1:]:
            end = (destination + (odd == 2)) % servers
            rows.append(circuit(f"t{i}", draw(st.integers(0, switches - 1)), source, end, float(since), float(until)))
    result = made(tasks, on, times, rows, circuits="per-slot", share_circuits=share, any_port=any_port)
    return result, slot_by_slot(result, on, share, any_port)


@given(random_slots())
@settings(max_examples=250, deadline=None)
def test_sweeps_agree_with_counting_slot_by_slot(case: Slotwise) -> None:
    result, holds = case
    verdicts = result.checked().equations
    assert {equation: verdicts[equation] for equation in holds} == holds


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=60, deadline=None)
def test_waiting_passes_through_chains_of_collectives(seed: int) -> None:
    """Against pairs written out: whatever waits for a collective that moves nothing waits for all that this waited for."""
    draw = np.random.default_rng(seed)
    n = int(draw.integers(2, 12))
    joins = draw.random(n) < 0.5
    waits = {i: [j for j in range(i) if draw.random() < 0.3] for i in range(n)}
    tasks = [collective(f"t{i}", "all_reduce", (0, 1), 1.0, *(f"t{j}" for j in waits[i])) if joins[i]
             else compute(f"t{i}", i, 1.0, *(f"t{j}" for j in waits[i])) for i in range(n)]
    start = {i: float(draw.integers(0, 6)) for i in range(n) if not joins[i]}
    behind: dict[int, set[int]] = {}
    for i in range(n):
        behind[i] = {e for j in waits[i] for e in (behind[j] if joins[j] else {j})}
    expected = all(start[i] >= start[j] + 1.0 for i in start for j in behind[i])
    order = draw.permutation(n)
    result = made([tasks[i] for i in order], cluster(servers=12), {f"t{i}": (s, s + 1.0) for i, s in start.items()},
                  all_reduce_on_network=False)
    assert result.checked().equations["5"] == expected


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=200, deadline=None)
def test_dark_time_agrees_with_walking_each_port_through_the_iteration(seed: int) -> None:
    draw = np.random.default_rng(seed)
    half, k, delay = bool(draw.random() < 0.4), int(draw.integers(1, 3)), float(draw.choice([1.0, 1.5]))
    on = cluster(3, k, 1, reconfiguration_ms=delay, duplex="half" if half else "full")
    tasks, times, rows = [], {}, []
    for i in range(int(draw.integers(2, 7))):
        source, step, start, slots = (int(draw.integers(*bounds)) for bounds in ((0, 3), (1, 3), (0, 14), (1, 3)))
        destination, dark = (source + step) % 3, float(draw.choice([0.0, delay]))
        tasks.append(transfer(f"t{i}", source, destination, slots))
        times[f"t{i}"] = (float(start), float(start + slots))
        rows.append(circuit(f"t{i}", 0, source, destination, *times[f"t{i}"], setup=max(0.0, start - dark),
                            ports=(int(draw.integers(0, k)), int(draw.integers(0, k)))))
    clash = paid = True
    held: dict[tuple[int, int, bool], list[Record]] = {}
    for r in rows:
        held.setdefault((r["source"], r["source_port"], not half), []).append(r)
        held.setdefault((r["destination"], r["destination_port"], False), []).append(r)
    for bookings in held.values():
        for one in bookings:
            for other in bookings:
                clash &= one is other or one["end_ms"] <= other["setup_ms"] or other["end_ms"] <= one["setup_ms"]
        in_turn = sorted(bookings, key=lambda r: r["setup_ms"])
        for last, this in zip(in_turn, in_turn[1:], strict=False):
            same = all(last[key] == this[key] for key in ("source", "destination", "source_port", "destination_port"))
            paid &= same or this["start_ms"] - this["setup_ms"] >= delay
    report = made(tasks, on, times, rows).checked()
    assert ("port bookings" not in broken(report)) == clash
    if clash:
        assert ("reconfiguration" not in broken(report)) == paid


def test_the_checker_shares_no_code_with_the_engines() -> None:
    for path in (ROOT / "topox_core" / "check").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names] if isinstance(node, ast.Import) else []
            for name in names:
                assert not name.startswith(("topox_core.schedule", "topox_core.graph.lowering", "topox_core.graph.rings")), path
    program = "import sys, topox_core.check.checker; print(*(m for m in sys.modules if m.startswith('topox_core')))"
    loaded = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not [m for m in loaded if m.startswith(("topox_core.schedule", "topox_core.graph.lowering", "topox_core.graph.rings"))]
