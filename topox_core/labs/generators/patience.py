"""Generator ``patience``: weights could be sent at once over an idle port, and it is better to wait.

The weights go before, between or after two activations; closed forms give all three.
"""

from dataclasses import dataclass

from topox_core.io.task_graph_rules import validated
from topox_core.labs.generators.generator import Generator, TaskInstance, send
from topox_core.model.task_graph import TaskGraph
from topox_core.workloads.parameter import compute_task


@dataclass(frozen=True)
class Patience(TaskInstance):
    """One instance: compute ``f0``, ``f1``, ``f2``, ``u2`` in ms, ``act0``, ``act1``, ``weights`` in MB."""

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


GENERATOR = Generator(
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
)
