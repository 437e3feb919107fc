"""Generator ``board``: two transfers want the port of server 0, and their order decides the iteration.

Two orders are all there are; closed forms give both.
"""

from dataclasses import dataclass

from topox_core.io.task_graph_rules import validated
from topox_core.labs.generators.generator import Generator, TaskInstance, send
from topox_core.model.task_graph import TaskGraph
from topox_core.workloads.parameter import compute_task


@dataclass(frozen=True)
class Board(TaskInstance):
    """One instance: compute times ``a``, ``b``, ``c`` in ms, transfers ``x``, ``y``, ``z`` in MB."""

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


GENERATOR = Generator(
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
)
