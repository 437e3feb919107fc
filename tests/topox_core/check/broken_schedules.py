"""Hand-made schedules: right ones, and ways to break each of them."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

from tests.topox_core.small_graphs import GBIT_MS as SLOT_BYTES, compute, transfer
from topox_core.check.checker import check
from topox_core.check.report import CheckReport
from topox_core.io.task_graph_rules import validated
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph

Record = dict[str, Any]


@dataclass(frozen=True)
class Made:
    """A task graph, a cluster and a result for them."""

    graph: TaskGraph
    cluster: Cluster
    record: Record

    def checked(
        self, change: Callable[[Record], object] | None = None, **options: Any
    ) -> CheckReport:
        """The verdict, after a change to a copy of the result."""
        record = copy.deepcopy(self.record)
        if change is not None:
            change(record)
        return check(self.graph, self.cluster, record, **options)


def broken(report: CheckReport) -> set[str]:
    """Names of the constraints that are violated."""
    return {constraint.name for constraint in report.constraints if not constraint.ok}


def cluster(
    servers: int = 4, ports: int = 2, switches: int = 2, room: int = 8, **keys: Any
) -> Cluster:
    return Cluster(servers, ports, switches, room, 100.0, **keys)


def collective(
    name: str, kind: str, members: Sequence[int], slots: float, *after: str, root: int | None = None
) -> Task:
    return Task(
        name,
        kind,
        dependencies=after,
        members=tuple(members),
        size_bytes=slots * SLOT_BYTES,
        root=root,
    )


def circuit(
    task: str,
    switch: int,
    source: int,
    destination: int,
    start: float,
    end: float,
    setup: float | None = None,
    ports: tuple[int, int] | None = None,
) -> Record:
    row = {
        "switch": switch,
        "source": source,
        "destination": destination,
        "setup_ms": start if setup is None else setup,
        "start_ms": start,
        "end_ms": end,
        "task": task,
    }
    return row if ports is None else {**row, "source_port": ports[0], "destination_port": ports[1]}


def listed(
    name: str, owner: str, source: int, destination: int, slots: float, *after: str
) -> Record:
    return {
        "id": name,
        "collective": owner,
        "source": source,
        "destination": destination,
        "size_bytes": slots * SLOT_BYTES,
        "dependencies": list(after),
    }


def made(
    tasks: Sequence[Task],
    on: Cluster,
    times: dict[str, tuple[float, float]],
    rows: Sequence[Record] = (),
    transfers: Sequence[Record] = (),
    tick_ms: float = 1.0,
    **settings: Any,
) -> Made:
    makespan = max((end for _, end in times.values()), default=0.0)
    record = {
        "format": "topox-schedule",
        "version": 2,
        "status": "optimal",
        "engine": "auto",
        "effort": "search",
        "clock": "slots",
        "makespan_ms": makespan,
        "bound_ms": makespan,
        "gap": 0.0,
        "bound_by": "critical path",
        "stopped_by": "proof",
        "wall_s": 0.1,
        "slot_ms": on.slot_ms,
        "tick_ms": tick_ms,
        "rounding": 0.0,
        "settings": {"model": "physical", **settings},
        "tasks": [
            {"id": name, "start_ms": start, "end_ms": end} for name, (start, end) in times.items()
        ],
        "transfers": list(transfers),
        "circuits": list(rows),
    }
    return Made(validated("hand-made", tuple(tasks), "hand-made"), on, record)


def row(record: Record, name: str, of: str = "tasks") -> Record:
    """The row of a task, a listed transfer or a circuit, to be changed in place."""
    return next(r for r in record[of] if r["task" if of == "circuits" else "id"] == name)


def moved(name: str, by: float) -> Callable[[Record], None]:
    """Run a task (and its circuits) earlier or later, and claim the makespan that follows."""

    def change(record: Record) -> None:
        for r in [row(record, name), *(c for c in record["circuits"] if c["task"] == name)]:
            r.update({key: r[key] + by for key in r.keys() & {"setup_ms", "start_ms", "end_ms"}})
        claimed(record)

    return change


def claimed(record: Record) -> None:
    """Claim what the rows say, so that only the constraint under test is broken."""
    record["makespan_ms"] = record["bound_ms"] = max(r["end_ms"] for r in record["tasks"])


def put(name: str, of: str = "tasks", **values: Any) -> Callable[[Record], object]:
    """Change values of one row, and claim the makespan that follows."""
    return both(lambda record: row(record, name, of).update(values), claimed)


def without(name: str, of: str = "tasks") -> Callable[[Record], object]:
    """Leave out the row of a task, a listed transfer, or the circuit of a task."""
    return lambda record: record[of].remove(row(record, name, of))


def added(of: str, *rows: Record) -> Callable[[Record], object]:
    return both(lambda record: record[of].extend(copy.deepcopy(rows)), claimed)


def said(**values: Any) -> Callable[[Record], None]:
    return lambda record: record.update(values)


def chosen(**values: Any) -> Callable[[Record], None]:
    return lambda record: record["settings"].update(values)


def both(*changes: Callable[[Record], object]) -> Callable[[Record], object]:
    return lambda record: [change(record) for change in changes]


def compute_only() -> Made:
    """Two devices of one server, on a clock of quarter slots."""
    return made(
        [
            compute("f", 0, 1.3),
            compute("b", 0, 0.5, "f", kind="backward"),
            compute("g", 0, 1.0, device=1),
            Task("join", "barrier", dependencies=("b", "g")),
            compute("u", 0, 0.0, "join", kind="update"),
        ],
        cluster(devices_per_server=2),
        {"f": (0.0, 1.5), "b": (1.5, 2.0), "g": (0.25, 1.25), "join": (2.0, 2.0), "u": (2.0, 2.0)},
        tick_ms=0.25,
    )


def one_transfer() -> Made:
    """A forward pass, its activations over one circuit, the next forward pass; 2.4 slots are rounded up to 3."""
    return made(
        [compute("f", 0, 2.0), transfer("act", 0, 1, 2.4, "f"), compute("g", 1, 2.0, "act")],
        cluster(),
        {"f": (0.0, 2.0), "act": (2.0, 5.0), "g": (5.0, 7.0)},
        [circuit("act", 0, 0, 1, 2.0, 5.0)],
    )


def ring(kind: str = "all_reduce") -> Made:
    """A ring of three that waits for three backward passes and holds up an update; each sends 2/3 of 3 slots, once or twice."""
    share = 4.0 if kind == "all_reduce" else 2.0
    before = [compute(f"b{i}", i, 1.0 + i, kind="backward") for i in range(3)]
    tasks = [
        *before,
        collective("g", kind, (0, 1, 2), 3.0, "b0", "b1", "b2"),
        compute("u", 0, 1.0, "g", kind="update"),
    ]
    end = 3.0 + share
    times = {
        **{f"b{i}": (0.0, 1.0 + i) for i in range(3)},
        **{f"g/{i}": (3.0, end) for i in range(3)},
        "u": (end, end + 1.0),
    }
    return made(
        tasks,
        cluster(),
        times,
        [circuit(f"g/{i}", 0, i, (i + 1) % 3, 3.0, end) for i in range(3)],
        [listed(f"g/{i}", "g", i, (i + 1) % 3, share, "b0", "b1", "b2") for i in range(3)],
    )


def ring_of_four() -> Made:
    """A reduce-scatter round four servers: each sends 3/4 of four slots to the next."""
    return made(
        [collective("r", "reduce_scatter", (3, 1, 0, 2), 4.0)],
        cluster(),
        {f"r/{i}": (0.0, 3.0) for i in range(4)},
        [
            circuit(f"r/{i}", 0, *pair, 0.0, 3.0)
            for i, pair in enumerate(((3, 1), (1, 0), (0, 2), (2, 3)))
        ],
        [
            listed(f"r/{i}", "r", *pair, 3.0)
            for i, pair in enumerate(((3, 1), (1, 0), (0, 2), (2, 3)))
        ],
    )


def ring_in_lock_steps() -> Made:
    """The all-gather of two servers twice over, as an all-reduce in two lock steps of half the tensor each, then an update."""
    steps = [(q, i) for q in range(2) for i in range(2)]
    waits = {1: ("g/s0/0", "g/s0/1"), 0: ()}
    times = {f"g/s{q}/{i}": (float(q), q + 1.0) for q, i in steps}
    return made(
        [
            collective("g", "all_reduce", (0, 1), 2.0),
            compute("u", 0, 1.0, "g", kind="update"),
        ],
        cluster(),
        times | {"u": (2.0, 3.0)},
        [circuit(f"g/s{q}/{i}", i, i, 1 - i, float(q), q + 1.0) for q, i in steps],
        [listed(f"g/s{q}/{i}", "g", i, 1 - i, 1.0, *waits[q]) for q, i in steps],
        steps="stepwise",
    )


def moving() -> Made:
    """A transfer that changes its switch at a slot boundary, to leave room for another."""
    return made(
        [transfer("a", 0, 1, 4), transfer("b", 2, 3, 2)],
        cluster(room=1),
        {"a": (0.0, 4.0), "b": (2.0, 4.0)},
        [
            circuit("a", 0, 0, 1, 0.0, 2.0),
            circuit("a", 1, 0, 1, 2.0, 4.0),
            circuit("b", 0, 2, 3, 2.0, 4.0),
        ],
        circuits="per-slot",
    )


def with_delay() -> Made:
    """Port 0 -> 1, the same again at once, then 0 -> 2 after 1.5 ms of dark; first circuits stand before the iteration."""
    return made(
        [
            transfer("a", 0, 1, 2),
            transfer("again", 0, 1, 1, "a"),
            transfer("other", 0, 2, 2, "again"),
        ],
        cluster(ports=1, switches=1, reconfiguration_ms=1.5),
        {"a": (0.0, 2.0), "again": (2.0, 3.0), "other": (5.0, 7.0)},
        [
            circuit("a", 0, 0, 1, 0.0, 2.0),
            circuit("again", 0, 0, 1, 2.0, 3.0),
            circuit("other", 0, 0, 2, 5.0, 7.0, setup=3.5),
        ],
    )


def repeating() -> Made:
    """Port 0 -> 1, then 0 -> 2, 2 ms of dark before each: the change back begins 1 ms before the iteration."""
    return made(
        [transfer("a", 0, 1, 1), transfer("b", 0, 2, 1, "a"), transfer("other", 1, 0, 1)],
        cluster(ports=1, switches=1, reconfiguration_ms=2.0),
        {"a": (1.0, 2.0), "b": (4.0, 5.0), "other": (5.0, 6.0)},
        [
            circuit("a", 0, 0, 1, 1.0, 2.0, setup=-1.0),
            circuit("b", 0, 0, 2, 4.0, 5.0, setup=2.0),
            circuit("other", 0, 1, 0, 5.0, 6.0),
        ],
        iteration="repeated",
    )


def half_duplex() -> Made:
    """One half-duplex port a switch: out on one switch, in on the other."""
    return made(
        [transfer("out", 0, 1, 2), transfer("in", 1, 0, 2)],
        cluster(duplex="half"),
        {"out": (0.0, 2.0), "in": (0.0, 2.0)},
        [circuit("out", 0, 0, 1, 0.0, 2.0), circuit("in", 1, 1, 0, 0.0, 2.0)],
    )


def shared() -> Made:
    """The printed model: two transfers of one pair on one circuit, and two tasks at once on a device."""
    return made(
        [
            transfer("a", 0, 1, 3),
            transfer("b", 0, 1, 2),
            compute("f", 0, 1.0),
            compute("g", 0, 1.0),
        ],
        cluster(ports=1, switches=2),
        {"a": (0.0, 3.0), "b": (1.0, 3.0), "f": (0.0, 1.0), "g": (0.0, 1.0)},
        [circuit("a", 1, 0, 1, 0.0, 3.0), circuit("b", 1, 0, 1, 1.0, 3.0)],
        model="paper",
    )


def two_ports() -> Made:
    """Two ports a server on one switch: two circuits at once, and one that takes over the other's port after its dark time."""
    return made(
        [transfer("a", 0, 1, 2), transfer("b", 0, 1, 4), transfer("c", 0, 2, 1, "a")],
        cluster(ports=2, switches=1, reconfiguration_ms=1.0),
        {"a": (0.0, 2.0), "b": (0.0, 4.0), "c": (3.0, 4.0)},
        [
            circuit("a", 0, 0, 1, 0.0, 2.0, ports=(0, 0)),
            circuit("b", 0, 0, 1, 0.0, 4.0, ports=(1, 1)),
            circuit("c", 0, 0, 2, 3.0, 4.0, setup=2.0, ports=(0, 0)),
        ],
    )


def both_switches() -> Made:
    """Two equal transfers at once on two switches between two passes: nothing can move without breaking something."""
    return made(
        [
            compute("f", 0, 3.0),
            transfer("a", 0, 1, 2, "f"),
            transfer("b", 0, 1, 2, "f"),
            compute("g", 1, 1.0, "a", "b"),
        ],
        cluster(),
        {"f": (0.0, 3.0), "a": (3.0, 5.0), "b": (3.0, 5.0), "g": (5.0, 6.0)},
        [circuit("a", 0, 0, 1, 3.0, 5.0), circuit("b", 1, 0, 1, 3.0, 5.0)],
    )


def all_to_all() -> Made:
    """Each ordered pair of three servers moves a third of the send buffer, in two rounds on one switch each."""
    pairs = [(i, (i + step) % 3) for step in (1, 2) for i in range(3)]
    return made(
        [collective("x", "all_to_all", (0, 1, 2), 3.0)],
        cluster(),
        {f"x/{i}-{j}": (0.0, 1.0) for i, j in pairs},
        [circuit(f"x/{i}-{j}", (j - i) % 3 - 1, i, j, 0.0, 1.0) for i, j in pairs],
        [listed(f"x/{i}-{j}", "x", i, j, 1.0) for i, j in pairs],
    )


def chain() -> Made:
    """A broadcast from server 2 along two pipelined chains, one each way round, half the tensor on each."""
    walks = {1: (2, 0, 1), 2: (2, 1, 0)}
    links = [(p, a, b) for p, walk in walks.items() for a, b in pairwise(walk)]
    return made(
        [collective("w", "broadcast", (0, 1, 2), 4.0, root=2)],
        cluster(),
        {f"w/{p}/{a}": (0.0, 2.0) for p, a, _ in links},
        [circuit(f"w/{p}/{a}", p - 1, a, b, 0.0, 2.0) for p, a, b in links],
        [listed(f"w/{p}/{a}", "w", a, b, 2.0) for p, a, b in links],
        rings=5,
    )


def tree() -> Made:
    """A broadcast by store and forward: 0 -> 1, then 0 -> 2 and 1 -> 3."""
    return made(
        [collective("w", "broadcast", (0, 1, 2, 3), 2.0, root=0)],
        cluster(),
        {"w/1": (0.0, 2.0), "w/2": (2.0, 4.0), "w/3": (2.0, 4.0)},
        [
            circuit("w/1", 0, 0, 1, 0.0, 2.0),
            circuit("w/2", 0, 0, 2, 2.0, 4.0),
            circuit("w/3", 0, 1, 3, 2.0, 4.0),
        ],
        [
            listed("w/1", "w", 0, 1, 2.0),
            listed("w/2", "w", 0, 2, 2.0),
            listed("w/3", "w", 1, 3, 2.0, "w/1"),
        ],
        broadcast="tree",
    )


def off_the_network() -> Made:
    """An all-reduce kept off the network still passes waiting on, through another one and a barrier."""
    return made(
        [
            compute("b", 0, 3.0, kind="backward"),
            collective("g", "all_reduce", (0, 1), 9.0, "b"),
            collective("h", "all_reduce", (0, 1, 2), 9.0, "g"),
            compute("u", 1, 1.0, "h", kind="update"),
        ],
        cluster(),
        {"b": (0.0, 3.0), "h": (3.0, 3.0), "u": (3.0, 4.0)},
        all_reduce_on_network=False,
    )


RIGHT: dict[str, Callable[[], Made]] = {
    maker.__name__: maker
    for maker in (
        compute_only,
        one_transfer,
        ring,
        ring_of_four,
        ring_in_lock_steps,
        moving,
        with_delay,
        repeating,
        half_duplex,
        shared,
        two_ports,
        both_switches,
        all_to_all,
        chain,
        tree,
        off_the_network,
    )
}


def third_at_once(room: int = 8) -> Made:
    """Three circuits out of server 0 and three into server 3 at once, one on each of three switches."""
    pairs = {"a": (0, 1), "b": (0, 2), "c": (0, 3), "d": (1, 3), "e": (2, 3)}
    switch = {"a": 0, "b": 1, "c": 2, "d": 0, "e": 1}
    return made(
        [transfer(name, *pair, 1) for name, pair in pairs.items()],
        cluster(ports=3, switches=3, room=room),
        dict.fromkeys(pairs, (0.0, 1.0)),
        [circuit(name, switch[name], *pair, 0.0, 1.0) for name, pair in pairs.items()],
        model="paper",
    )


CLAIMS, CLOCK, EQ5, EQ6 = (
    "makespan, bound and gap",
    "start on the clock",
    "precedence",
    "circuit for every transfer",
)
EQ9, EQ10, LOWERING = "in, one peer", "out, one peer", "collectives move their bytes"

# Each: a right schedule, a change, and exactly the constraints that it breaks.
BROKEN: dict[str, tuple[Callable[[], Made], Callable[[Record], object], set[str]]] = {
    # eq. 2
    "makespan is not the last end": (one_transfer, said(makespan_ms=6.0, bound_ms=6.0), {CLAIMS}),
    "bound above makespan": (one_transfer, said(bound_ms=8.0), {CLAIMS}),
    "optimal with a bound below": (one_transfer, said(bound_ms=6.0, gap=1 / 7), {CLAIMS}),
    "gap of nothing": (one_transfer, said(status="feasible", bound_ms=6.0, gap=0.0), {CLAIMS}),
    "infeasible with a schedule": (one_transfer, said(status="infeasible"), {CLAIMS}),
    # eq. 3
    "task left out": (one_transfer, both(without("g"), claimed), {"one start"}),
    "listed transfer left out": (ring, without("g/1"), {"one start", EQ6}),
    "task twice": (
        one_transfer,
        added("tasks", {"id": "f", "start_ms": 0.0, "end_ms": 2.0}),
        {"one start"},
    ),
    "task of no graph": (
        one_transfer,
        added("tasks", {"id": "x", "start_ms": 0.0, "end_ms": 2.0}),
        {"one start"},
    ),
    "start before the iteration": (one_transfer, moved("f", -1.0), {"one start"}),
    # eq. 4
    "transfer off the slot": (one_transfer, both(moved("act", 0.5), moved("g", 1.0)), {CLOCK}),
    "compute off the tick": (compute_only, both(moved("f", 0.0), moved("g", 0.1)), {CLOCK}),
    "tick divides no slot": (one_transfer, said(tick_ms=0.3), {CLOCK}),
    "tick not the one asked for": (one_transfer, chosen(tick=0.5), {CLOCK}),
    "tick longer than the slot": (one_transfer, said(tick_ms=2.0), {CLOCK}),
    "slot not the cluster's": (one_transfer, said(slot_ms=2.0, tick_ms=2.0), {CLOCK}),
    "circuit moves inside a slot": (
        moving,
        both(
            lambda r: r["circuits"][0].update(end_ms=2.5),
            lambda r: r["circuits"][1].update(start_ms=2.5, setup_ms=2.5),
            moved("b", 1.0),
            said(makespan_ms=5.0, bound_ms=5.0),
        ),
        {CLOCK},
    ),
    # p_j
    "compute too short": (one_transfer, both(put("f", end_ms=1.0)), {"duration"}),
    "transfer not rounded up to slots": (
        one_transfer,
        both(put("act", end_ms=4.4), put("act", "circuits", end_ms=4.4)),
        {"duration", CLOCK},
    ),
    "transfer too long": (
        one_transfer,
        both(put("act", end_ms=6.0), put("act", "circuits", end_ms=6.0), moved("g", 1.0)),
        {"duration"},
    ),
    "barrier that lasts": (
        compute_only,
        both(put("join", end_ms=2.25), moved("u", 0.25)),
        {"duration"},
    ),
    "duration below zero": (off_the_network, put("h", start_ms=3.0, end_ms=2.0), {"duration"}),
    "port speed overridden": (one_transfer, chosen(cluster={"port_gbps": 50.0}), {"duration"}),
    # eq. 5
    "before its predecessor ends": (one_transfer, moved("g", -1.0), {EQ5}),
    "transfer before its predecessor ends": (one_transfer, moved("act", -1.0), {EQ5}),
    "ring before its slowest member": (ring, moved("g/1", -1.0), {EQ5}),
    "update before the ring ends": (ring, moved("u", -1.0), {EQ5}),
    "update before the last lock step ends": (ring_in_lock_steps, moved("u", -1.0), {EQ5}),
    "through collectives that move nothing": (
        off_the_network,
        both(without("h"), moved("u", -1.0)),
        {EQ5},
    ),
    "lock step before the data arrives": (
        ring_in_lock_steps,
        both(moved("g/s1/0", -1.0), moved("g/s0/0", 1.0)),
        {EQ5},
    ),
    "collective's row begins late": (
        off_the_network,
        added("tasks", {"id": "g", "start_ms": 2.0, "end_ms": 3.0}),
        {EQ5},
    ),
    "collective's row ends early": (
        ring,
        added("tasks", {"id": "g", "start_ms": 3.0, "end_ms": 5.0}),
        {EQ5},
    ),
    "collective's row begins after its transfers": (
        ring,
        added("tasks", {"id": "g", "start_ms": 4.0, "end_ms": 7.0}),
        {EQ5},
    ),
    # eq. 6
    "no circuit": (moving, without("b", "circuits"), {EQ6}),
    "circuit with a hole": (
        moving,
        lambda r: r["circuits"][1].update(start_ms=3.0, setup_ms=3.0),
        {EQ6},
    ),
    "circuit the other way": (moving, put("b", "circuits", source=3, destination=2), {EQ6}),
    "circuit that carries nothing": (
        moving,
        added("circuits", circuit("b", 0, 2, 3, 2.0, 2.0)),
        {EQ6},
    ),
    "circuit beyond its transfer": (
        moving,
        put("b", "circuits", start_ms=1.0, setup_ms=1.0),
        {EQ6, "switch capacity"},
    ),
    "circuit of no task": (moving, added("circuits", circuit("x", 1, 2, 3, 0.0, 1.0)), {EQ6}),
    "circuit of a compute task": (
        one_transfer,
        added("circuits", circuit("f", 1, 2, 3, 0.0, 1.0)),
        {EQ6},
    ),
    "circuit that carries before its set-up": (moving, put("b", "circuits", setup_ms=3.0), {EQ6}),
    # eq. 7
    "switch too full": (moving, lambda r: r["circuits"][1].update(switch=0), {"switch capacity"}),
    "dark circuits take room too": (
        moving,
        put("b", "circuits", setup_ms=1.0),
        {"switch capacity"},
    ),
    "switch that is not there": (moving, put("b", "circuits", switch=2), {"switch capacity"}),
    # eq. 8
    "more circuits than ports": (third_at_once, chosen(cluster={"ports_per_server": 2}), {"ports"}),
    "half duplex counts both ways": (
        half_duplex,
        chosen(cluster={"ports_per_server": 1}, model="paper", circuits="per-slot"),
        {"ports"},
    ),
    # eqs 9 and 10
    "two into a server on one switch": (
        third_at_once,
        lambda r: r["circuits"][3].update(switch=2),
        {EQ9},
    ),
    "two out of a server on one switch": (
        third_at_once,
        lambda r: r["circuits"][0].update(switch=2),
        {EQ10},
    ),
    "the same pair twice on one switch": (
        both_switches,
        put("b", "circuits", switch=0),
        {EQ9, EQ10, "port bookings"},
    ),
    "shared where each needs its own": (shared, chosen(share_circuits=False), {"ports", EQ9, EQ10}),
    # physical
    "two tasks on a device": (
        compute_only,
        both(moved("b", -0.25), moved("f", 0.0)),
        {"device exclusivity", EQ5},
    ),
    "devices of the printed model": (
        shared,
        chosen(exclusive_devices=True),
        {"device exclusivity"},
    ),
    "moving where it must stay": (moving, chosen(circuits="continuous"), {"continuity"}),
    "two circuits for one transfer": (
        one_transfer,
        added("circuits", circuit("act", 1, 0, 1, 2.0, 5.0)),
        {"continuity"},
    ),
    "circuit gone before its transfer ends": (
        one_transfer,
        put("act", "circuits", end_ms=4.0),
        {"continuity", EQ6},
    ),
    "one port for two circuits": (
        two_ports,
        put("b", "circuits", source_port=0),
        {"port bookings", "reconfiguration"},
    ),
    "port that is not there": (
        two_ports,
        put("b", "circuits", destination_port=2),
        {"port bookings"},
    ),
    "dark time too short": (
        with_delay,
        put("other", "circuits", setup_ms=4.0),
        {"reconfiguration"},
    ),
    "set up before the iteration": (
        with_delay,
        put("a", "circuits", setup_ms=-0.5),
        {"reconfiguration"},
    ),
    "last circuit does not come back in time": (
        repeating,
        both(said(makespan_ms=5.0, bound_ms=5.0), moved("other", -1.0)),
        {EQ10, "ports", "port bookings"},
    ),
    "change back in half the time": (
        repeating,
        put("a", "circuits", setup_ms=0.0),
        {"reconfiguration"},
    ),
    "change back begins sooner than a delay before": (
        repeating,
        put("a", "circuits", setup_ms=-2.5),
        {EQ10, "ports", "port bookings", "reconfiguration"},
    ),
    "change back where the first iteration is timed": (
        repeating,
        chosen(iteration="first"),
        {"reconfiguration"},
    ),
    "full switch at the end of the iteration before": (
        repeating,
        chosen(cluster={"ports_per_switch": 1}),
        {"switch capacity"},
    ),
    "set up while the port still carries": (
        with_delay,
        put("other", "circuits", setup_ms=2.5),
        {"port bookings", EQ10, "ports"},
    ),
    "another circuit in between": (
        two_ports,
        put("c", "circuits", setup_ms=3.0),
        {"reconfiguration"},
    ),
    "delay without ports to pay it": (
        moving,
        chosen(cluster={"reconfiguration_ms": 0.5}),
        {"reconfiguration"},
    ),
    "a port both ways at once": (
        half_duplex,
        put("in", "circuits", switch=0),
        {"one way a port", "port bookings"},
    ),
    # lowering
    "ring left open": (ring, put("g/2", "transfers", destination=1), {LOWERING, EQ6}),
    "two rings of two for one of four": (
        ring_of_four,
        lambda r: [
            row(r, f"r/{i}", of).update(source=a, destination=b)
            for i, (a, b) in enumerate(((3, 0), (0, 3), (1, 2), (2, 1)))
            for of in ("transfers", "circuits")
        ],
        {LOWERING},
    ),
    "ring that leaves the group": (
        ring,
        both(*[put("g/1", of, destination=3) for of in ("transfers", "circuits")]),
        {LOWERING},
    ),
    "bytes that differ on the ring": (
        ring,
        put("g/2", "transfers", size_bytes=3.5 * SLOT_BYTES),
        {LOWERING},
    ),
    "twice the bytes of one pass": (
        partial(ring, "all_gather"),
        put("g/0", "transfers", size_bytes=4 * SLOT_BYTES),
        {LOWERING, "duration"},
    ),
    "half of the bytes": (
        ring,
        lambda r: [t.update(size_bytes=3.5 * SLOT_BYTES) for t in r["transfers"]],
        {LOWERING},
    ),
    "a member leaves the ring": (
        ring,
        both(without("g/2"), without("g/2", "transfers"), without("g/2", "circuits")),
        {LOWERING},
    ),
    "no transfers": (
        ring,
        both(
            *[without(f"g/{i}", of) for i in range(3) for of in ("tasks", "transfers", "circuits")],
            moved("u", -4.0),
        ),
        {LOWERING},
    ),
    "too few rings": (ring, chosen(rings=2), {LOWERING}),
    "another stride than chosen": (ring, chosen(strides=[2]), {LOWERING}),
    "all-reduce on the network after all": (ring, chosen(all_reduce_on_network=False), {LOWERING}),
    "transfer waits for too little": (
        ring,
        put("g/0", "transfers", dependencies=["b0"]),
        {LOWERING},
    ),
    "transfer waits for nobody knows what": (
        ring,
        put("g/0", "transfers", dependencies=["b0", "b1", "b2", "x"]),
        {LOWERING},
    ),
    "transfer of a collective not there": (
        ring,
        put("g/0", "transfers", collective="x"),
        {LOWERING},
    ),
    "transfer of a task that is none": (ring, put("g/0", "transfers", collective="u"), {LOWERING}),
    "transfer listed twice": (
        ring,
        lambda r: r["transfers"].append(dict(r["transfers"][0])),
        {LOWERING, "one start"},
    ),
    "lock step that waits for no arrival": (
        ring_in_lock_steps,
        put("g/s1/0", "transfers", dependencies=["g/s0/0"]),
        {LOWERING},
    ),
    "lock steps all at once": (
        ring_in_lock_steps,
        lambda r: [t.update(dependencies=[]) for t in r["transfers"]],
        {LOWERING},
    ),
    "lock steps that wait for each other": (
        ring_in_lock_steps,
        put("g/s0/0", "transfers", dependencies=["g/s1/0"]),
        {LOWERING, EQ5},
    ),
    "pair left out": (
        all_to_all,
        both(without("x/0-1"), without("x/0-1", "transfers"), without("x/0-1", "circuits")),
        {LOWERING},
    ),
    "pair with less than its share": (
        all_to_all,
        put("x/0-1", "transfers", size_bytes=0.5 * SLOT_BYTES),
        {LOWERING},
    ),
    "chain cut": (chain, put("w/1/0", "transfers", source=2, destination=0), {LOWERING, EQ6}),
    "chain from another root": (
        chain,
        both(*[put("w/1/2", of, source=1, destination=2) for of in ("transfers", "circuits")]),
        {LOWERING},
    ),
    "tree that sends what it does not have": (
        tree,
        put("w/3", "transfers", dependencies=[]),
        {LOWERING},
    ),
    "tree not rooted in the root": (
        tree,
        lambda r: [
            row(r, name, of).update(
                source=a,
                destination=b,
                **({"dependencies": list(after)} if of == "transfers" else {}),
            )
            for name, a, b, *after in (("w/1", 0, 1), ("w/2", 3, 2, "w/3"), ("w/3", 2, 3, "w/2"))
            for of in ("transfers", "circuits")
        ],
        {LOWERING, EQ5},
    ),
    "tree that forgets a member": (
        tree,
        both(put("w/3", "transfers", destination=2), put("w/3", "circuits", destination=2)),
        {LOWERING, EQ9, "port bookings"},
    ),
}
