"""Fixed circuits that know the task graph: searched with the fluid simulator, from the best known layouts on.

After DELTA (arXiv 2603.28096), built from its abstract: circuits that stay for the whole job are
chosen by the time of the iteration, not by a matrix of bytes, and circuits that save no time are
given back. Every formula here is ours. All limits count layouts that are tried, never seconds, so
that the same input gives the same answer on any machine.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice

import numpy as np

from topox_core.errors import refuse_if
from topox_core.fabrics.fixed.layout_times import (
    LayoutTimes,
    MatrixStart,
    StaticLayout,
    check_size,
    found_layouts,
    matrix_starts,
    ring_graphs,
)
from topox_core.fabrics.fluid.links import ideal_bound
from topox_core.fabrics.fluid.simulator import go_on
from topox_core.fabrics.run import FabricRequest
from topox_core.model.critical_path import critical_path
from topox_core.model.transfer_graph import TRANSFER
from topox_core.runs.run import Stop
from topox_core.topology.greedy import Circuits as Matrix
from topox_core.topology.traffic import Pair

# Layouts are all tried instead where there are no more of them than steps, and this many at most.
MAX_EVERY = 20_000
SLACK_MS = 1e-9
# How a draw changes a layout: one circuit more for a pair, two circuits exchange their ends, three do.
ONE_MORE, EXCHANGE = 0.55, 0.90
OF_CHAIN, BY_BYTES = 0.25, 0.7
WARMTH = 0.01
# Starts that are annealed, and the share of the effort for going on from the best of them.
MAX_BEGUN, AGAIN = 4, 0.5
# Effort for the graphs that the job may be lowered to besides, over that for the search.
OF_OTHERS, LIKELY = 0.5, 2
# A search whose steps are given is runs of so many: one that cools down more slowly ends no better.
RUN_STEPS = 4_000
# Effort for giving circuits back, over that for the search.
RELEASING = 0.5
# Of a first answer: layouts tried, and what simulating them may take, in paths looked at on links. It
# runs beside every plan: 0.1 to 1 s on the samples, where eight times the work takes up to 2.5 s and
# gives circuits that are 0 to 10 % faster.
FIRST_STEPS, FIRST_WORK = 20_000, 1_000_000
DRAWS = 10


@dataclass
class Effort:
    """Layouts that may be tried and the work that simulating them may take, and what is spent of both.

    So many ``draws`` count as one layout more: with few layouts in all the same ones are drawn again and
    again.
    """

    steps: int
    work: float = math.inf
    draws: int = DRAWS
    tried: float = 0.0
    worked: int = 0

    @staticmethod
    def of(steps: int) -> Effort:
        """Return the effort of so many layouts; of a first answer for 0."""
        return Effort(steps) if steps else Effort(FIRST_STEPS, FIRST_WORK, draws=1)

    @property
    def spent(self) -> float:
        """Share that is used up; 1 and more is the end."""
        return max(self.tried / self.steps, self.worked / self.work) if self.steps else 1.0

    def part(self, share: float) -> Effort:
        """Return a share of the effort, nothing of it spent."""
        return Effort(round(self.steps * share), self.work * share, self.draws)


@dataclass(frozen=True)
class LayoutAnswer:
    """Fixed circuits for a graph, and how they were found.

    Attributes
    ----------
    starts
        Words and time of every layout that the search could begin with, the time infinite where
        servers that talk are not connected.
    evaluations
        Layouts that were simulated.
    given_back
        Circuits that the best layout found could do without at no loss of time.
    every
        Whether every layout was tried, so that none is shorter over shortest routes.
    """

    best: StaticLayout
    starts: tuple[tuple[str, float], ...]
    evaluations: int = 0
    given_back: int = 0
    every: bool = False

    @property
    def circuits(self) -> int:
        """Circuits laid."""
        return int(self.best.layout.circuits.sum())


def layout_by_matrix(request: FabricRequest) -> LayoutAnswer:
    """Return the fastest of the circuits that the matrix of bytes asks for, dealt greedily and by least load.

    Raises
    ------
    InputError
        If the cluster is too large.
    """
    check_size(request)
    starts = list(_matrices(request))
    best = _fastest(starts)
    _check_connected(best.time_ms)
    words = f"circuits by the matrix of bytes: {best.name}"
    laid = StaticLayout(best.times.graph, best.times.layout(best.circuits, words), best.time_ms)
    return LayoutAnswer(laid, tuple((one.name, one.time_ms) for one in starts), len(starts))


def layout_by_graph(request: FabricRequest, stop: Stop) -> LayoutAnswer:
    """Return the fastest circuits found for a graph; never slower than any of the starts.

    Parameters
    ----------
    request
        What runs. The static fabric in ``request.runs`` is one of the starts; its options say how
        many layouts are tried (0 for as many as a first answer has time for).

    Raises
    ------
    InputError
        If the cluster is too large, or nothing connects those that talk.
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    check_size(request)
    effort = Effort.of(request.options.layout_steps)
    found = list(found_layouts(request, stop))
    matrices = [*_matrices(request, chordal=True), *_over_shortest_routes(request, found)]
    starts = [(one.layout.name, one.time_ms) for one in found]
    starts += [(one.name, one.time_ms) for one in matrices]
    _check_connected(min((time_ms for _, time_ms in starts), default=math.inf))
    matrices.sort(key=lambda one: one.time_ms)
    others = {graph.digest for graph in request.others}
    own_starts = [one for one in matrices if one.times.graph.digest not in others]
    every, best = _search(request, own_starts, effort, stop)
    # What a job may be lowered to else has a search of its own, so that it takes nothing from the
    # rest: of the graphs that may be faster those with the lowest bounds, more where all layouts are few.
    bound_ms = {one.digest: ideal_bound(replace(request, graph=one)).ms for one in request.others}
    faster = [one for one, ms in bound_ms.items() if ms < best.time_ms * (1 - 1e-9)]
    likely = sorted(faster, key=lambda one: bound_ms[one])[: MAX_BEGUN if every else LIKELY]
    if likely:
        besides = [one for one in matrices if one.times.graph.digest in likely]
        every_other, other = _search(request, besides, effort.part(OF_OTHERS), stop)
        every = every and every_other and len(likely) == len(faster)
        best = other if other.time_ms < best.time_ms * (1 - 1e-9) else best
    best, given_back = _released(best, effort.part(RELEASING), stop)
    evaluations = sum({id(one.times): one.times.evaluations for one in matrices}.values())
    # TopologyFinder routes rings in its own way; that may, rarely, be faster than shortest routes.
    answer = min(found, key=lambda one: one.time_ms, default=None)
    if answer is None or answer.time_ms >= best.time_ms * (1 - 1e-12):
        laid = best.times.layout(best.circuits, "circuits by the task graph")
        answer = StaticLayout(best.times.graph, laid, best.time_ms)
    else:
        given_back = 0
    different = tuple(dict.fromkeys(starts))
    return LayoutAnswer(answer, different, evaluations + len(found), given_back, every)


def _check_connected(time_ms: float) -> None:
    """Refuse a job for which no start connects those that talk."""
    refuse_if(
        (time_ms == math.inf, "no layout was found in which every server reaches all its partners"),
        file="layout",
        field="circuits",
    )


def _matrices(request: FabricRequest, chordal: bool = False) -> Iterator[MatrixStart]:
    exclusive = request.settings.exclusive_devices
    for rings, graph in ring_graphs(request):
        yield from matrix_starts(LayoutTimes(graph, request.cluster, exclusive), rings, chordal)


def _over_shortest_routes(
    request: FabricRequest, found: Sequence[StaticLayout]
) -> Iterator[MatrixStart]:
    """Yield TopologyFinder's circuits with the routes that the search gives them."""
    for laid in found:
        times = LayoutTimes(laid.graph, request.cluster, request.settings.exclusive_devices)
        circuits = laid.layout.circuits[: request.cluster.servers, : request.cluster.servers]
        circuits = np.ascontiguousarray(circuits, np.int32)
        name = f"{laid.layout.name}, shortest routes"
        yield MatrixStart(times, circuits, times.time_ms(circuits), name)


def _search(
    request: FabricRequest, starts: Sequence[MatrixStart], effort: Effort, stop: Stop
) -> tuple[bool, MatrixStart]:
    """Return whether every layout was tried, and the best one; ``starts`` by their time."""
    first = starts[0]
    of_graph: dict[str, MatrixStart] = {}  # the best start of each graph
    for one in starts:
        of_graph.setdefault(one.times.graph.digest, one)
    begin = list(of_graph.values())[:MAX_BEGUN]
    talking = sorted({*first.times.pairs.source.tolist(), *first.times.pairs.destination.tolist()})
    ports = request.cluster.ports_per_server
    most = min(effort.steps, MAX_EVERY, int(min(effort.work, 1e15)) // len(request.graph))
    most //= len(begin)
    if _is_few(len(talking), ports, most):
        best = first
        for times in [one.times for one in begin]:
            for circuits in every_layout(request.cluster.servers, talking, ports):
                go_on(stop)
                time_ms = times.time_ms(circuits, best.time_ms * (1 - 1e-12))
                if time_ms < best.time_ms:
                    best = MatrixStart(times, circuits, time_ms, "every layout")
        return True, best
    begin = [one for one in begin if one.time_ms < math.inf] or [first]
    bounds_ms = [ideal_bound(replace(request, graph=one.times.graph)).ms for one in begin]
    if first.time_ms <= min(bounds_ms) * (1 + 1e-9):
        return False, first
    rng = random.Random(request.settings.seed)
    if effort.work < math.inf:
        return False, _annealed_twice(begin, effort, rng, stop)
    # First what a first answer does, draw by draw, so that no search of as many steps is behind one.
    enough = effort.steps >= FIRST_STEPS
    found = [_annealed_twice(begin, Effort.of(0), rng, stop)] if enough else []
    runs = max(1, round(effort.steps / RUN_STEPS))
    part = effort.part(1 / runs)
    found += [_annealed_twice(begin, part, rng, stop) for _ in range(runs)]
    return False, _fastest(found)


def _annealed_twice(
    begin: Sequence[MatrixStart], effort: Effort, rng: random.Random, stop: Stop
) -> MatrixStart:
    """Return the best layout annealed from each start, then on from the best of what they became."""
    part = effort.part((1 - AGAIN) / len(begin))
    best = _fastest([annealed(one, replace(part), rng, stop) for one in begin])
    return annealed(best, effort.part(AGAIN), rng, stop)


def _fastest(found: Sequence[MatrixStart]) -> MatrixStart:
    return min(found, key=lambda one: one.time_ms)


def _is_few(talking: int, ports: int, most: int) -> bool:
    """Return whether there are at most ``most`` layouts of so many servers, counted without building them."""
    if talking > 5 or ports > 4:
        return False
    each = every_layout(talking, list(range(talking)), ports)
    return sum(1 for _ in islice(each, most + 1)) <= most


def every_layout(servers: int, talking: Sequence[int], ports: int) -> Iterator[Matrix]:
    """Yield every matrix of circuits between the servers that talk, with at most ``ports`` in each row and column."""
    m = len(talking)
    circuits = np.zeros((servers, servers), np.int32)
    places = [(a, b) for a in range(m) for b in range(m) if a != b]
    out, into = [ports] * m, [ports] * m

    def fill(at: int) -> Iterator[Matrix]:
        if at == len(places):
            yield circuits.copy()
            return
        a, b = places[at]
        for k in range(min(out[a], into[b]), -1, -1):
            out[a] -= k
            into[b] -= k
            circuits[talking[a], talking[b]] = k
            yield from fill(at + 1)
            out[a] += k
            into[b] += k
        circuits[talking[a], talking[b]] = 0

    yield from fill(0)


def annealed(start: MatrixStart, effort: Effort, rng: random.Random, stop: Stop) -> MatrixStart:
    """Return the best layout that simulated annealing finds, or the start.

    The temperature falls from a hundredth of the best time to nothing, as the square of what is
    left of the effort.

    Raises
    ------
    Stopped
        If ``stop()`` turns true meanwhile.
    """
    best = current = start
    moves, times = _Moves(start, rng), start.times
    began, before, drawn = times.work, times.evaluations, 0
    while (spent := effort.spent) < 1:
        go_on(stop)
        effort.tried = times.evaluations - before + drawn / effort.draws
        effort.worked = times.work - began
        drawn += 1
        circuits = moves.changed(current.circuits)
        # Drawn first, so that a simulation ends as soon as its layout would not be taken.
        warmth = WARMTH * best.time_ms * (1 - spent) ** 2
        threshold = current.time_ms - warmth * math.log(1.0 - rng.random())
        if circuits is None:
            continue
        time_ms = times.time_ms(circuits, threshold)
        if time_ms == math.inf:
            continue
        current = MatrixStart(times, circuits, time_ms, "search")
        if time_ms < best.time_ms * (1 - 1e-12):
            best = current
            moves.aim(circuits)
    return best


class _Moves:
    """Draws changes of a layout; half of them favour the pairs on the critical path of the best layout."""

    def __init__(self, start: MatrixStart, rng: random.Random) -> None:
        self.times, self.rng, pairs = start.times, rng, start.times.pairs
        self.pairs, self.ports = pairs.ends, start.times.cluster.ports_per_server
        wanted = start.times.bytes_between[pairs.source, pairs.destination]
        self.weights: list[float] = np.cumsum(wanted).tolist()
        self.chain: list[Pair] = []
        self.aim(start.circuits)

    def aim(self, circuits: Matrix) -> None:
        """Take the critical path of a layout for the next draws."""
        graph, execution = self.times.graph, self.times.execution(circuits)
        if execution is None:
            return
        path = critical_path(execution, self.times.exclusive)
        sending = graph.kind[path.nodes] == TRANSFER
        nodes = path.nodes[sending]
        ends = zip(graph.source[nodes].tolist(), graph.destination[nodes].tolist(), strict=True)
        self.chain = list(ends)
        self.chain_weights = np.cumsum((path.end_ms - path.start_ms)[sending]).tolist()

    def changed(self, circuits: Matrix) -> Matrix | None:
        """Return a layout near another one; None where the draw changes nothing."""
        draw = self.rng.random()
        if draw < ONE_MORE:
            return self._one_more(circuits)
        return self._exchanged(circuits, 2 if draw < EXCHANGE else 3)

    def _pair(self) -> Pair:
        rng = self.rng
        if self.chain and self.chain_weights[-1] > 0 and rng.random() < OF_CHAIN:
            return rng.choices(self.chain, cum_weights=self.chain_weights)[0]
        if self.weights[-1] > 0 and rng.random() < BY_BYTES:
            return rng.choices(self.pairs, cum_weights=self.weights)[0]
        return rng.choice(self.pairs)

    def _one_more(self, circuits: Matrix) -> Matrix | None:
        """Give a pair one circuit more; circuits that make room have their loose ends joined."""
        if not self.pairs:
            return None
        a, b = self._pair()
        more = circuits.copy()
        loose_in = loose_out = -1
        if more[a].sum() >= self.ports:
            loose_in = self._torn(more, a, slice(None))
        if more[:, b].sum() >= self.ports:
            loose_out = self._torn(more, slice(None), b)
        more[a, b] += 1
        if loose_in >= 0 and loose_out >= 0 and loose_in != loose_out:
            more[loose_out, loose_in] += 1
        return None if np.array_equal(more, circuits) else more

    def _torn(self, circuits: Matrix, row: int | slice, column: int | slice) -> int:
        """Take one circuit out of a row or a column at random; return the server at its other end."""
        line = circuits[row, column]
        ends = np.repeat(np.arange(len(line)), line)
        chosen = int(ends[self.rng.randrange(len(ends))])
        line[chosen] -= 1
        return chosen

    def _exchanged(self, circuits: Matrix, count: int) -> Matrix | None:
        """Let two or three circuits pass their ends on in a circle."""
        source, destination = np.nonzero(circuits)
        if len(source) < count:
            return None
        chosen = self.rng.sample(range(len(source)), count)
        changed = circuits.copy()
        for k, at in enumerate(chosen):
            a, b = int(source[at]), int(destination[chosen[(k + 1) % count]])
            if a == b:
                return None
            changed[source[at], destination[at]] -= 1
            changed[a, b] += 1
        return None if np.array_equal(changed, circuits) else changed


def _released(best: MatrixStart, effort: Effort, stop: Stop) -> tuple[MatrixStart, int]:
    """Return a layout without the circuits that save no time, and how many those are.

    Circuits that carry nothing go at once; then each is tried, those with the fewest busy
    milliseconds first, until none can go or the effort is spent.
    """
    if best.time_ms == math.inf:
        return best, 0
    times, circuits, time_ms = best.times, best.circuits, best.time_ms
    before = int(circuits.sum())
    used = np.where(times.busy_ms(circuits) > 0, circuits, 0)
    idle_ms = times.time_ms(used, time_ms + SLACK_MS)
    if idle_ms < math.inf:
        circuits, time_ms = used, min(time_ms, idle_ms)
    began, going = times.work, True
    while going and effort.spent < 1:
        going = False
        busy = times.busy_ms(circuits)
        links = sorted(zip(*np.nonzero(circuits), strict=True), key=lambda link: (busy[link], link))
        for a, b in links:
            go_on(stop)
            if effort.spent >= 1:
                break
            fewer = circuits.copy()
            fewer[a, b] -= 1
            effort.tried, effort.worked = effort.tried + 1, times.work - began
            without_ms = times.time_ms(fewer, time_ms + SLACK_MS)
            if without_ms < math.inf:
                circuits, time_ms, going = fewer, min(time_ms, without_ms), True
    released = before - int(circuits.sum())
    return replace(best, circuits=circuits, time_ms=times.time_ms(circuits)), released
