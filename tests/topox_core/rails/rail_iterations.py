"""Hand-made iterations on a rail, and what every run on one must keep."""

from dataclasses import dataclass, field
from itertools import combinations, product

import numpy as np

from topox_core.rails.iteration import (
    ALL_GATHER,
    COMPUTE,
    SEND,
    UPDATE,
    Rail,
    RailGroup,
    RailIteration,
    RailRun,
)
from topox_core.rails.timing import port_use

# 400 Gbit/s both ways of a ring of two: half of the tensor crosses, so this many bytes take one
# millisecond.
GATHER_MS = 2 * 400e6 / 8
SEND_MS = 400e6 / 8


def issued(iteration: RailIteration, rank: int) -> list[int]:
    """Return the nodes of a rank in its order of issue."""
    return iteration.issue_idx[iteration.issue_ptr[rank] : iteration.issue_ptr[rank + 1]].tolist()


def waits(iteration: RailIteration, node: int) -> list[int]:
    """Return the nodes that a node waits for."""
    return iteration.pred_idx[iteration.pred_ptr[node] : iteration.pred_ptr[node + 1]].tolist()


@dataclass
class Maker:
    """Collects nodes in the order of issue: that of every rank at once."""

    groups: tuple[RailGroup, ...]
    ranks: int
    rows: list[tuple[int, int, float, int, float, list[int]]] = field(default_factory=list)

    def compute(self, rank: int, ms: float, *after: int) -> int:
        self.rows.append((COMPUTE, rank, ms, -1, 0.0, list(after)))
        return len(self.rows) - 1

    def talk(self, kind: int, group: int, size_bytes: float, *after: int) -> int:
        self.rows.append((kind, -1, 0.0, group, size_bytes, list(after)))
        return len(self.rows) - 1

    def iteration(self) -> RailIteration:
        n = len(self.rows)
        kinds, rank, ms, group, size, after = zip(*self.rows, strict=True)
        ranks = [(r,) if g < 0 else self.groups[g].ranks for r, g in zip(rank, group, strict=True)]
        issued = [[i for i in range(n) if r in ranks[i]] for r in range(self.ranks)]
        return RailIteration(
            name="by hand",
            ranks=self.ranks,
            stands_for=np.ones(self.ranks, np.int32),
            stage=np.zeros(self.ranks, np.int32),
            kind=np.array(kinds, np.int32),
            rank=np.array(rank, np.int32),
            duration_ms=np.array(ms),
            work=np.where(np.array(kinds) == COMPUTE, UPDATE, -1).astype(np.int32),
            group=np.array(group, np.int32),
            size_bytes=np.array(size),
            microbatch=np.full(n, -1, np.int32),
            layer=np.full(n, -1, np.int32),
            label=tuple(f"node {i}" for i in range(n)),
            pred_ptr=np.cumsum([0, *(len(a) for a in after)]).astype(np.int32),
            pred_idx=np.array([p for a in after for p in a], np.int32),
            issue_ptr=np.cumsum([0, *(len(one) for one in issued)]).astype(np.int32),
            issue_idx=np.array([i for one in issued for i in one], np.int32),
            groups=self.groups,
        )


def groups(*members: tuple[str, tuple[int, ...]]) -> tuple[RailGroup, ...]:
    return tuple(
        RailGroup(f"{parallelism}.{'-'.join(map(str, ranks))}", parallelism, ranks, len(ranks))
        for parallelism, ranks in members
    )


def two_by_two() -> Maker:
    """Two stages of two replicas: groups 0 and 1 are the stages' rings, 2 and 3 the replicas' pairs."""
    return Maker(groups(("fsdp", (0, 1)), ("fsdp", (2, 3)), ("pp", (0, 2)), ("pp", (1, 3))), 4)


def chain(*windows_ms: float) -> RailIteration:
    """Ring and pair of rank 0 in turn, 1 ms each, after so much computing."""
    maker = Maker(groups(("fsdp", (0, 1)), ("pp", (0, 2))), 3)
    before: tuple[int, ...] = ()
    for k, window in enumerate(windows_ms):
        busy = maker.compute(0, window, *before)
        kind, size = (SEND, SEND_MS) if k % 2 else (ALL_GATHER, GATHER_MS)
        before = (maker.talk(kind, k % 2, size, busy),)
    return maker.iteration()


def check_run(run: RailRun) -> None:
    """A run breaks no order, no circuit that carries, and no promise of the control plane."""
    check_times(run.iteration, run.start_ms, run.end_ms)
    assert run.iteration_ms == run.end_ms.max()
    check_circuits(run.iteration, run.rail, run)


def check_times(iteration: RailIteration, start: np.ndarray, end: np.ndarray) -> None:
    for node in range(len(iteration)):
        assert (end[waits(iteration, node)] <= start[node]).all()
    # Computing, and the collectives of one group, run one after the other as issued.
    for rank, group in product(range(iteration.ranks), range(-1, len(iteration.groups))):
        own = np.array(issued(iteration, rank), int)
        stream = own[(iteration.group[own] == group) & (iteration.kind[own] != SEND)]
        assert (end[stream[:-1]] <= start[stream[1:]]).all()


def check_circuits(iteration: RailIteration, rail: Rail, run: RailRun) -> None:
    use = port_use(iteration, rail)
    for one, other in combinations(run.circuits, 2):
        shared = {*use.sides[one.group]} & {*use.sides[other.group]}
        if shared and use.wiring[one.group] != use.wiring[other.group]:
            assert one.end_ms <= other.setup_ms or other.end_ms <= one.setup_ms, (one, other)
    for circuit in run.circuits:
        assert circuit.start_ms == circuit.setup_ms + (rail.dark_ms if circuit.changed else 0.0)
    for node in np.flatnonzero(iteration.kind != COMPUTE).tolist():
        group = int(iteration.group[node])
        assert not use.sides[group] or any(
            use.wiring[one.group] == use.wiring[group]
            and one.start_ms <= run.start_ms[node]
            and run.end_ms[node] <= one.end_ms
            for one in run.circuits
        ), f"node {node} ran without circuits"
