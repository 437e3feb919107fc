"""Generator ``turns``: four servers send to another partner after each stretch of compute.

A circuit must change four times or data must go round, so that it depends on the reconfiguration
delay which fabric is fastest; closed forms say where.
"""

from __future__ import annotations

from dataclasses import dataclass

from topox_core.io.task_graph_rules import validated
from topox_core.labs.draws import Draws, first_that
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.workloads.parameter import compute_task

SERVERS = 4
TURNS = 4


@dataclass(frozen=True)
class Turns:
    """One instance: in each turn every server computes, then sends to the server a stride away.

    Attributes
    ----------
    computed_ms, strides, sent_mb
        Of each turn; a MB takes a ms.
    """

    seed: int
    attempt: int
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
        # With the delay between two waits, the k shortest are too short: k R - their sum = detour.
        for k in range(1, len(waits) + 1):
            delay_ms = (self.detour_ms + sum(waits[:k])) / k
            if k == len(waits) or delay_ms <= waits[k]:
                break
        return delay_ms

    def graph(self) -> TaskGraph:
        """Return the instance as a task graph."""
        tasks: list[Task] = []
        for k in range(TURNS):
            for i in range(SERVERS):
                waits = () if k == 0 else (f"w{k - 1}.{i}", f"w{k - 1}.{self._sender(k - 1, i)}")
                tasks.append(
                    compute_task(f"c{k}.{i}", "forward", waits, i, float(self.computed_ms[k]))
                )
            tasks += [
                Task(
                    f"w{k}.{i}",
                    "communication",
                    (f"c{k}.{i}",),
                    source=i,
                    destination=(i + self.strides[k]) % SERVERS,
                    size_bytes=self.sent_mb[k] * 1e6,
                )
                for i in range(SERVERS)
            ]
        return validated(f"turns, seed {self.seed}", tasks)

    def cluster(self, delay_ms: float = 0.0) -> Cluster:
        """Return its four servers with one port each on one switch."""
        return Cluster(
            servers=SERVERS,
            ports_per_server=1,
            switches=1,
            ports_per_switch=SERVERS,
            port_gbps=8.0,
            reconfiguration_ms=delay_ms,
        )

    def _sender(self, turn: int, receiver: int) -> int:
        return (receiver - self.strides[turn]) % SERVERS


def turns(seed: int) -> Turns:
    """Return the instance of a seed.

    Raises
    ------
    InputError
        If the seed is negative.
    """
    return first_that("e", seed, _drawn)


def _drawn(draws: Draws) -> Turns | None:
    strides: list[int] = []
    for k in range(TURNS):
        others = [stride for stride in range(1, SERVERS) if stride not in strides[-1:]]
        strides.append(draws.pick(f"stride{k}", others))
    one = Turns(
        draws.seed,
        draws.attempt,
        tuple(draws.whole(f"c{k}", 1, 12) for k in range(TURNS)),
        tuple(strides),
        tuple(draws.whole(f"w{k}", 2, 8) for k in range(TURNS)),
    )
    return one if _is_hard(one) else None


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
