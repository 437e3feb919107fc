"""Generators of small task graphs in which the order on a port decides: every order that is told of is carried out.

``board``: two transfers want the port of server 0, and two orders are all there are. ``patience``: weights could
be sent at once over an idle port, and it is better to wait; they go before, between or after two activations.
``fan_out``: server 0 computes, sends to four others, and each of them computes.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import permutations
from math import ceil
from typing import ClassVar

import numpy as np

from topox_core.io.task_graph_rules import validated
from topox_core.labs.generators.generator import GBPS, Generator, TaskInstance, send
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.model.transfer_graph import bytes_per_ms
from topox_core.workloads.workload import compute_task

RECEIVERS = 4
KEPT_PLANS = 1_000  # of all instances together
Need = tuple[str, int | None]
# By name, in which order ports take their transfers.
Orders = Mapping[str, Sequence[str]]


def length_ms(task: Task, cluster: Cluster) -> float:
    """Return how long a task takes, in ms: its duration, or the whole slots that its bytes need on one port."""
    if task.duration_ms is not None:
        return task.duration_ms
    slots = (task.size_bytes or 0.0) / bytes_per_ms(cluster.port_gbps) / cluster.slot_ms
    return float(-(-slots // 1) * cluster.slot_ms)


def needs(task: Task) -> tuple[Need, ...]:
    """Return what a task occupies while it runs: a device, or a port that sends and one that receives."""
    if task.duration_ms is not None:
        return (("device", task.server),)
    return ("out", task.source), ("in", task.destination)


@dataclass(frozen=True)
class HandPlan:
    """One schedule of an instance: the name of its order, and the start of each task in ms."""

    name: str
    graph: TaskGraph
    cluster: Cluster
    starts_ms: Mapping[str, float]

    @property
    def makespan_ms(self) -> float:
        """When the last task ends."""
        lengths = {task.id: length_ms(task, self.cluster) for task in self.graph.tasks}
        return max(start + lengths[name] for name, start in self.starts_ms.items())


def carried_out(name: str, graph: TaskGraph, cluster: Cluster, order: Sequence[str]) -> HandPlan:
    """Return the schedule in which ports take their transfers in an order, each the first port that is free.

    What one device computes is in the order of its dependencies already.
    """
    tasks = {task.id: task for task in graph.tasks}
    starts: dict[str, float] = {}
    ends: dict[str, float] = {}
    free: defaultdict[Need, list[float]] = defaultdict(lambda: [0.0] * cluster.ports_per_server)
    for one in order:
        ports = [free[need] for need in needs(tasks[one]) if need[0] != "device"]
        ready = max((ends[before] for before in tasks[one].dependencies), default=0.0)
        starts[one] = max([ready, *map(min, ports)])
        ends[one] = starts[one] + length_ms(tasks[one], cluster)
        for port in ports:
            port[port.index(min(port))] = ends[one]
    return HandPlan(name, graph, cluster, {one: starts[one] for one in tasks})


class Ordered(TaskInstance):
    """A small task graph with all the orders that may be the best."""

    orders: ClassVar[Orders]

    @lru_cache(maxsize=KEPT_PLANS)  # noqa: B019 (instances are kept as long)
    def plans(
        self, ports: int = 1, port_gbps: float = GBPS, slot_ms: float = 1.0
    ) -> tuple[HandPlan, ...]:
        """Return the schedule of every order, where servers have some ports of a speed."""
        graph = self.graph()
        cluster = self.cluster(ports, port_gbps).changed(slot_ms=slot_ms)
        return tuple(carried_out(name, graph, cluster, by) for name, by in self.orders.items())

    def order_ms(self, name: str) -> int:
        """Return the iteration in one of the orders."""
        return next(int(plan.makespan_ms) for plan in self.plans() if plan.name == name)

    def best(self, ports: int = 1, port_gbps: float = GBPS, slot_ms: float = 1.0) -> HandPlan:
        """Return the shortest of all."""
        return min(self.plans(ports, port_gbps, slot_ms), key=lambda plan: plan.makespan_ms)

    def optimum_ms(self, ports: int = 1, port_gbps: float = GBPS) -> int:
        """Return the iteration of the shortest, of whole slots."""
        return int(self.best(ports, port_gbps).makespan_ms)

    @property
    def sum_ms(self) -> int:
        """Everything one after another."""
        cluster = self.cluster()
        return int(sum(length_ms(task, cluster) for task in self.graph().tasks))


@dataclass(frozen=True)
class Board(Ordered):
    """One instance of ``board``: compute times ``a``, ``b``, ``c`` in ms, transfers ``x``, ``y``, ``z`` in MB."""

    a: int
    x: int
    y: int
    b: int
    c: int
    z: int
    orders: ClassVar[Orders] = {"x_first": "axybcz", "y_first": "ayxcbz"}

    def graph(self) -> TaskGraph:
        """Return the instance as a task graph."""
        return validated(
            f"board, seed {self.seed}",
            [
                compute_task("a", "forward", (), 0, float(self.a)),
                send("x", ("a",), 0, 1, self.x),
                send("y", ("a",), 0, 2, self.y),
                compute_task("b", "forward", ("x",), 1, float(self.b)),
                compute_task("c", "forward", ("y",), 2, float(self.c)),
                send("z", ("b",), 1, 0, self.z),
            ],
        )


@dataclass(frozen=True)
class Patience(Ordered):
    """One instance of ``patience``: compute ``f0``, ``f1``, ``f2``, ``u2`` in ms, ``act0``, ``act1``, ``weights`` in MB."""

    f0: int
    act0: int
    f1: int
    act1: int
    f2: int
    u2: int
    weights: int
    orders: ClassVar[Orders] = {
        "first": ("weights", "f0", "act0", "f1", "act1", "f2", "u2"),
        "between": ("f0", "act0", "weights", "f1", "act1", "f2", "u2"),
        "last": ("f0", "act0", "f1", "act1", "f2", "weights", "u2"),
    }

    @property
    def path_ms(self) -> int:
        """The critical path."""
        return self.f0 + self.act0 + self.f1 + self.act1 + self.f2 + self.u2

    def graph(self) -> TaskGraph:
        """Return the instance as a task graph."""
        return validated(
            f"patience, seed {self.seed}",
            [
                compute_task("f0", "forward", (), 0, float(self.f0)),
                send("act0", ("f0",), 0, 1, self.act0),
                compute_task("f1", "forward", ("act0",), 1, float(self.f1)),
                send("act1", ("f1",), 1, 2, self.act1),
                compute_task("f2", "forward", ("act1",), 2, float(self.f2)),
                send("weights", (), 0, 2, self.weights),
                compute_task("u2", "update", ("f2", "weights"), 2, float(self.u2)),
            ],
        )


@dataclass(frozen=True)
class FanOut(Ordered):
    """One instance of ``fan_out``; sizes in MB and times in ms are the same number at 8 Gbit/s.

    Attributes
    ----------
    first_ms
        What server 0 computes before it sends.
    sent_mb, computed_ms
        Of each receiver: what it is sent, and what it computes then.
    """

    first_ms: int
    sent_mb: tuple[int, ...]
    computed_ms: tuple[int, ...]
    orders: ClassVar[Orders] = {
        "".join(to): ("f", *(f"w{one}" for one in to), "c1", "c2", "c3", "c4")
        for to in permutations("1234")
    }

    @property
    def path_ms(self) -> int:
        """The longest chain."""
        return self.first_ms + max(map(sum, zip(self.sent_mb, self.computed_ms, strict=True)))

    @property
    def load_ms(self) -> int:
        """What the one port of server 0 needs, with what must come before and after."""
        return self.first_ms + sum(self.sent_mb) + min(self.computed_ms)

    def graph(self) -> TaskGraph:
        """Return the instance as a task graph."""
        tasks = [compute_task("f", "forward", (), 0, float(self.first_ms))]
        both = zip(self.sent_mb, self.computed_ms, strict=True)
        for server, (sent_mb, computed_ms) in enumerate(both, 1):
            sent = send(f"w{server}", ("f",), 0, server, sent_mb)
            receive = compute_task(f"c{server}", "forward", (sent.id,), server, float(computed_ms))
            tasks += [sent, receive]
        return validated(f"fan-out, seed {self.seed}", tasks)

    def tail_bounds_ms(self, ports: int) -> tuple[int, ...]:
        """Return the same bound over the transfers that a tail of at least some length follows."""
        bounds = []
        for tail in sorted(set(self.computed_ms)):
            chosen = [k for k in range(RECEIVERS) if self.computed_ms[k] >= tail]
            work = ceil(sum(self.sent_mb[k] for k in chosen) / ports)
            bounds.append(self.first_ms + work + min(self.computed_ms[k] for k in chosen))
        return tuple(bounds)


_WHEN = {"first": "once", "between": "between", "last": "after"}
_BETTER = {-1: "double", 0: "same", 1: "second"}
GENERATORS = (
    Generator(
        "board",
        1,
        "a1",
        Board,
        lambda draws: draws.ranged(a=(1, 3), x=(2, 5), y=(2, 5), b=(1, 6), c=(1, 6), z=(1, 3)),
        # The order matters by two ms at least.
        lambda one: abs(one.order_ms("x_first") - one.order_ms("y_first")) >= 2,
        {name: name for name in "axybcz"},
        {
            "x_first": lambda one: one.order_ms("x_first"),
            "y_first": lambda one: one.order_ms("y_first"),
            "optimum": lambda one: one.optimum_ms(),
            # Which transfer goes first in the shortest iteration.
            "first": lambda one: one.best().name[0],
            # The critical path.
            "path": lambda one: one.a + max(one.x + one.b + one.z, one.y + one.c),
            "sum": "sum_ms",
            # The shorter transfer, as a rule for one queue has it.
            "shorter_first": lambda one: None if one.x == one.y else "x" if one.x < one.y else "y",
        },
    ),
    Generator(
        "patience",
        1,
        "a2",
        Patience,
        lambda draws: draws.ranged(
            f0=(1, 2),
            act0=(1, 2),
            f1=(2, 5),
            act1=(1, 2),
            f2=(2, 5),
            u2=(1, 2),
            weights=(4, 8),
        ),
        # It pays to wait, the critical path is not reached, and two of the orders differ.
        lambda one: (
            one.order_ms("first") - one.optimum_ms() >= 2
            and one.optimum_ms() > one.path_ms
            and one.order_ms("between") != one.order_ms("last")
        ),
        {name: name for name in ("f0", "act0", "f1", "act1", "f2", "u2", "weights")},
        {
            "first": lambda one: one.order_ms("first"),
            "between": lambda one: one.order_ms("between"),
            "last": lambda one: one.order_ms("last"),
            "optimum": lambda one: one.optimum_ms(),
            # When the weights go in the shortest iteration.
            "when": lambda one: _WHEN[one.best().name],
            "path": "path_ms",
            # Whether the critical path, as a bound, is reached.
            "reached": lambda one: "ports" if one.optimum_ms() > one.path_ms else "yes",
        },
    ),
    Generator(
        "fan_out",
        1,
        "b",
        FanOut,
        lambda draws: {
            "first_ms": draws.whole("f", 1, 3),
            "sent_mb": draws.row("w", RECEIVERS, 2, 6, first=1),
            "computed_ms": draws.row("c", RECEIVERS, 1, 6, first=1),
        },
        # The port binds with one port, something else with two, and both bounds are reached.
        lambda one: (
            one.load_ms > one.path_ms + 2
            and one.load_ms == max(one.tail_bounds_ms(1)) == one.optimum_ms(1)
            and max(one.path_ms, *one.tail_bounds_ms(2)) == one.optimum_ms(2) < one.load_ms - 2
        ),
        {
            "f_server": lambda _: 0,
            "f": "first_ms",
            "w": lambda one: ", ".join(map(str, one.sent_mb)),
            "c": lambda one: ", ".join(map(str, one.computed_ms)),
        },
        {
            "path": "path_ms",
            "load": "load_ms",
            "one": lambda one: one.optimum_ms(1),
            "two": lambda one: one.optimum_ms(2),
            # One port of twice the speed still carries whole slots.
            "fast": lambda one: one.optimum_ms(1, 2 * GBPS),
            # What binds with one port: that of server 0, or the critical path.
            "binds": lambda one: "port" if max(one.tail_bounds_ms(1)) > one.path_ms else "path",
            # What is better: a second port, or one of double speed.
            "better": lambda one: _BETTER[
                int(np.sign(one.optimum_ms(1, 2 * GBPS) - one.optimum_ms(2)))
            ],
            # What shortens a critical path of compute tasks alone: to split the longest of them. The longest stretch
            # of compute is f with one of c1 to c4; nothing that the network offers is on it.
            "advice": lambda _: "split",
            # The load of the port without what its last receiver still computes.
            "no_tail": lambda one: one.first_ms + sum(one.sent_mb),
            # Everything one after another.
            "sum": "sum_ms",
            # Half the iteration with one port.
            "half_of_one": lambda one: one.optimum_ms(1) / 2,
            # With one port of double speed if a transfer kept its circuit for half a slot.
            "half_slots": lambda one: one.best(1, 2 * GBPS, 0.5).makespan_ms,
        },
    ),
)
