"""Generators of small task graphs in which the order on a port decides; closed forms and enumerations give their answers.

``board``: two transfers want the port of server 0, and two orders are all there are. ``patience``: weights could
be sent at once over an idle port, and it is better to wait; they go before, between or after two activations.
``fan_out``: server 0 computes, sends to four others, and each of them computes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil

from topox_core.io.task_graph_rules import validated
from topox_core.labs.generators.generator import Generator, TaskInstance, send
from topox_core.model.task_graph import TaskGraph
from topox_core.workloads.workload import compute_task

RECEIVERS = 4


@dataclass(frozen=True)
class Board(TaskInstance):
    """One instance of ``board``: compute times ``a``, ``b``, ``c`` in ms, transfers ``x``, ``y``, ``z`` in MB."""

    a: int
    x: int
    y: int
    b: int
    c: int
    z: int

    @property
    def x_first_ms(self) -> int:
        """The iteration if transfer x has the port first."""
        return max(self.a + self.x + self.b + self.z, self.a + self.x + self.y + self.c)

    @property
    def y_first_ms(self) -> int:
        """The iteration if transfer y has the port first."""
        return max(self.a + self.y + self.c, self.a + self.y + self.x + self.b + self.z)

    @property
    def optimum_ms(self) -> int:
        """The shorter of the two."""
        return min(self.x_first_ms, self.y_first_ms)

    @property
    def sum_ms(self) -> int:
        """Everything one after another."""
        return self.a + self.x + self.y + self.b + self.c + self.z

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
class Patience(TaskInstance):
    """One instance of ``patience``: compute ``f0``, ``f1``, ``f2``, ``u2`` in ms, ``act0``, ``act1``, ``weights`` in MB."""

    f0: int
    act0: int
    f1: int
    act1: int
    f2: int
    u2: int
    weights: int

    @property
    def at_once_ms(self) -> int:
        """The iteration if the weights are sent before both activations."""
        sent = max(self.f0, self.weights) + self.act0 + self.f1
        return max(sent, self.weights) + self.act1 + self.f2 + self.u2

    @property
    def between_ms(self) -> int:
        """The iteration if they are sent between the activations."""
        ready = self.f0 + self.act0
        sent = ready + self.weights
        return max(max(ready + self.f1, sent) + self.act1 + self.f2, sent) + self.u2

    @property
    def after_ms(self) -> int:
        """The iteration if they are sent after both activations."""
        ready = self.f0 + self.act0 + self.f1 + self.act1
        return max(ready + self.f2, ready + self.weights) + self.u2

    @property
    def optimum_ms(self) -> int:
        """The shortest of the three."""
        return min(self.at_once_ms, self.between_ms, self.after_ms)

    @property
    def when(self) -> str:
        """When the weights go in the shortest iteration."""
        ends = {"once": self.at_once_ms, "between": self.between_ms, "after": self.after_ms}
        return min(ends, key=ends.__getitem__)

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
class FanOut(TaskInstance):
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

    @property
    def path_ms(self) -> int:
        """The longest chain."""
        return self.first_ms + max(map(sum, zip(self.sent_mb, self.computed_ms, strict=True)))

    @property
    def load_ms(self) -> int:
        """What the one port of server 0 needs, with what must come before and after."""
        return self.first_ms + sum(self.sent_mb) + min(self.computed_ms)

    @property
    def one_port_ms(self) -> int:
        """The optimum with one port."""
        return self.optimum_ms(1)

    @property
    def two_ports_ms(self) -> int:
        """The optimum with two ports."""
        return self.optimum_ms(2)

    @property
    def fast_port_ms(self) -> int:
        """The optimum with one port of twice the speed, which still carries whole slots."""
        return self.optimum_ms(1, speed=2)

    def optimum_ms(self, ports: int, speed: int = 1) -> int:
        """Return the shortest of all orders in which the next free port takes the next transfer."""
        return int(self.shortest_ms([ceil(mb / speed) for mb in self.sent_mb], ports))

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

    def shortest_ms(self, lengths_ms: Sequence[float], ports: int) -> float:
        """Return the shortest iteration of all orders, if transfers take so long."""
        orders = permutations(range(RECEIVERS))
        return min(self._ends_ms(order, lengths_ms, ports) for order in orders)

    def _ends_ms(self, order: tuple[int, ...], lengths_ms: Sequence[float], ports: int) -> float:
        free, end = [float(self.first_ms)] * ports, 0.0
        for k in order:
            port = free.index(min(free))
            free[port] += lengths_ms[k]
            end = max(end, free[port] + self.computed_ms[k])
        return end


GENERATORS = (
    Generator(
        "board",
        1,
        "a1",
        Board,
        lambda draws: draws.ranged(a=(1, 3), x=(2, 5), y=(2, 5), b=(1, 6), c=(1, 6), z=(1, 3)),
        # The order matters by two ms at least.
        lambda one: abs(one.x_first_ms - one.y_first_ms) >= 2,
        {name: name for name in "axybcz"},
        {
            "x_first": "x_first_ms",
            "y_first": "y_first_ms",
            "optimum": "optimum_ms",
            # Which transfer goes first in the shortest iteration.
            "first": lambda one: "x" if one.x_first_ms < one.y_first_ms else "y",
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
            one.at_once_ms - one.optimum_ms >= 2
            and one.optimum_ms > one.path_ms
            and one.between_ms != one.after_ms
        ),
        {name: name for name in ("f0", "act0", "f1", "act1", "f2", "u2", "weights")},
        {
            "first": "at_once_ms",
            "between": "between_ms",
            "last": "after_ms",
            "optimum": "optimum_ms",
            "when": "when",
            "path": "path_ms",
            # Whether the critical path, as a bound, is reached.
            "reached": lambda one: "ports" if one.optimum_ms > one.path_ms else "yes",
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
            and one.load_ms == max(one.tail_bounds_ms(1)) == one.one_port_ms
            and one.two_ports_ms == max(one.path_ms, *one.tail_bounds_ms(2))
            and one.two_ports_ms < one.one_port_ms - 2
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
            "one": "one_port_ms",
            "two": "two_ports_ms",
            "fast": "fast_port_ms",
            # What binds with one port: that of server 0, or the critical path.
            "binds": lambda one: "port" if max(one.tail_bounds_ms(1)) > one.path_ms else "path",
            # What is better: a second port, or one of double speed.
            "better": lambda one: (
                "same"
                if one.two_ports_ms == one.fast_port_ms
                else "second"
                if one.two_ports_ms < one.fast_port_ms
                else "double"
            ),
            # What shortens a critical path of compute tasks alone: to split the longest of them. The longest stretch
            # of compute is f with one of c1 to c4; nothing that the network offers is on it.
            "advice": lambda _: "split",
            # The load of the port without what its last receiver still computes.
            "no_tail": lambda one: one.first_ms + sum(one.sent_mb),
            # Everything one after another.
            "sum": lambda one: one.first_ms + sum(one.sent_mb) + sum(one.computed_ms),
            # Half the iteration with one port.
            "half_of_one": lambda one: one.one_port_ms / 2,
            # With one port of double speed if a transfer kept its circuit for half a slot.
            "half_slots": lambda one: one.shortest_ms([mb / 2 for mb in one.sent_mb], 1),
        },
    ),
)
