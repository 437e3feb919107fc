"""Generator ``turns``: four servers send to another partner after each stretch of compute.

A circuit must change four times or data must go round, so that it depends on the reconfiguration
delay which fabric is fastest; closed forms say where.
"""

from dataclasses import dataclass
from typing import Any

from topox_core.io.task_graph_rules import validated
from topox_core.labs.generators.generator import Draws, Generator, GivenTable, TaskInstance, send
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.workloads.workload import compute_task

SERVERS = 4
TURNS = 4


@dataclass(frozen=True)
class Turns(TaskInstance):
    """One instance: in each turn every server computes, then sends to the server a stride away.

    Attributes
    ----------
    computed_ms, strides, sent_mb
        Of each turn; a MB takes a ms.
    """

    computed_ms: tuple[int, ...]
    strides: tuple[int, ...]
    sent_mb: tuple[int, ...]

    @property
    def free_ms(self) -> int:
        """The iteration if a change of circuits took no time."""
        return sum(self.computed_ms) + sum(self.sent_mb)

    @property
    def detour_ms(self) -> int:
        """What fixed circuits add: their one ring of stride 1 takes ``stride`` hops."""
        return sum((s - 1) * mb for s, mb in zip(self.strides, self.sent_mb, strict=True))

    @property
    def static_ms(self) -> int:
        """The iteration on fixed circuits."""
        return self.free_ms + self.detour_ms

    def reactive_ms(self, delay_ms: float) -> float:
        """Return the iteration where circuits change on demand: the first of a port costs nothing."""
        return self.free_ms + (TURNS - 1) * delay_ms

    def provisioned_ms(self, delay_ms: float) -> float:
        """Return the iteration where circuits change ahead of time, while servers compute."""
        return self.free_ms + sum(max(0.0, delay_ms - ms) for ms in self.computed_ms[1:])

    @property
    def crossover_reactive_ms(self) -> float:
        """The delay above which fixed circuits beat changes on demand."""
        return self.detour_ms / (TURNS - 1)

    @property
    def crossover_provisioned_ms(self) -> float:
        """The delay above which fixed circuits beat changes ahead of time."""
        waits = sorted(self.computed_ms[1:])
        # With k waits too short the delay is k R - their sum = detour; counting others in makes it longer.
        return min((self.detour_ms + sum(waits[:k])) / k for k in range(1, TURNS))

    def graph(self) -> TaskGraph:
        """Return the instance as a task graph."""
        tasks: list[Task] = []
        for k in range(TURNS):
            for i in range(SERVERS):
                sender = (i - self.strides[k - 1]) % SERVERS
                waits = () if k == 0 else (f"w{k - 1}.{i}", f"w{k - 1}.{sender}")
                tasks.append(
                    compute_task(f"c{k}.{i}", "forward", waits, i, float(self.computed_ms[k]))
                )
            tasks += [
                send(
                    f"w{k}.{i}",
                    (f"c{k}.{i}",),
                    i,
                    (i + self.strides[k]) % SERVERS,
                    self.sent_mb[k],
                )
                for i in range(SERVERS)
            ]
        return validated(f"turns, seed {self.seed}", tasks)

    def given(self) -> GivenTable:
        """Return a row a turn."""
        rows = zip(self.strides, self.computed_ms, self.sent_mb, strict=True)
        return GivenTable(
            ("turn", "stride", "compute", "then send"),
            tuple((str(k), str(s), f"{ms} ms", f"{mb} MB") for k, (s, ms, mb) in enumerate(rows)),
        )


def _drawn(draws: Draws) -> dict[str, Any]:
    strides: list[int] = []
    for k in range(TURNS):
        others = [stride for stride in range(1, SERVERS) if stride not in strides[-1:]]
        strides.append(draws.pick(f"stride{k}", others))
    return {
        "computed_ms": draws.row("c", TURNS, 1, 12),
        "strides": tuple(strides),
        "sent_mb": draws.row("w", TURNS, 2, 8),
    }


def _is_hard(one: Turns) -> bool:
    """Whether both crossovers lie apart and in reach, and the waits that hide a change differ."""
    reactive, provisioned = one.crossover_reactive_ms, one.crossover_provisioned_ms
    waits = one.computed_ms[1:]
    return (
        3 <= reactive <= 12
        and provisioned - reactive >= 2
        and provisioned < 40
        and len(set(waits)) == len(waits)
        and min(waits) >= 2
    )


GENERATOR = Generator(
    "turns",
    1,
    "e",
    Turns,
    _drawn,
    _is_hard,
    {
        "strides": lambda one: ", ".join(map(str, one.strides)),
        "compute": lambda one: ", ".join(map(str, one.computed_ms)),
        "sizes": lambda one: ", ".join(map(str, one.sent_mb)),
    },
    {
        "static": "static_ms",
        "free": "free_ms",
        "cross_reactive": "crossover_reactive_ms",
        "cross_provisioned": "crossover_provisioned_ms",
        # By how much changes ahead of time move the crossover: less than double, or double and more.
        "moved": lambda one: (
            "double" if one.crossover_provisioned_ms >= 2 * one.crossover_reactive_ms else "less"
        ),
        # At 10 ms, changes ahead of time, as if the first circuits had to be set up as well.
        "with_first": lambda one: one.provisioned_ms(10) + max(0.0, 10.0 - one.computed_ms[0]),
        # Bytes that the ring of stride 1 carries for each byte asked for.
        "ring_tax": lambda one: (one.detour_ms + sum(one.sent_mb)) / sum(one.sent_mb),
        "reactive_10": lambda one: one.reactive_ms(10),
        "provisioned_10": lambda one: one.provisioned_ms(10),
        "by_four": lambda one: one.detour_ms / 4,
        "by_twelve": lambda one: one.detour_ms / 12,
    },
)
