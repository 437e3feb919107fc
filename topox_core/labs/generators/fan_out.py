"""Generator ``fan_out``: server 0 computes, sends to four others, and each of them computes.

Closed forms and an enumeration give its answers; no solver is asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations
from math import ceil

from topox_core.io.task_graph_rules import validated
from topox_core.labs.generators.generator import Generator, TaskInstance, send
from topox_core.model.task_graph import TaskGraph
from topox_core.workloads.parameter import compute_task

RECEIVERS = 4


@dataclass(frozen=True)
class FanOut(TaskInstance):
    """One instance; sizes in MB and times in ms are the same number at 8 Gbit/s.

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


GENERATOR = Generator(
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
)
