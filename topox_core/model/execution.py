"""What every fabric returns: when each task ran, and which circuits carried the transfers, changing or laid before."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from topox_core.model.cluster import Cluster
from topox_core.model.transfer_graph import FloatArray, IntArray, TransferGraph


@dataclass(frozen=True)
class PortsHeld:
    """The switch and the ports that carry each transfer, ports numbered within (server, switch) from 0."""

    node: IntArray
    switch: IntArray
    source_port: IntArray
    destination_port: IntArray


@dataclass(frozen=True)
class BookedPorts(PortsHeld):
    """Ports that are held, and whether one of the two changed its circuit for the transfer."""

    changed: NDArray[np.bool_]


@dataclass(frozen=True)
class Circuits(BookedPorts):
    """Circuit intervals as arrays, ordered by start, then switch, source and port.

    A circuit is dark from ``setup_ms`` to ``start_ms`` (equal where the ports already held it or
    nothing is charged), carries until ``end_ms``. ``node`` is the transfer it carries. Ports matter
    only with several of a server on a switch. ``changed`` is true where one of the two ports held
    another circuit before. Where the iteration repeats, a port begins with its last circuit, and what
    its first one takes to be set up may begin in the iteration before, at a time below 0; else the
    first circuit of a port stands before the iteration begins and is no change.
    """

    source: IntArray
    destination: IntArray
    setup_ms: FloatArray
    start_ms: FloatArray
    end_ms: FloatArray

    def __len__(self) -> int:
        return len(self.switch)

    def dark_times(self, period_ms: float) -> tuple[NDArray[np.intp], FloatArray, FloatArray]:
        """Return (row, begin, end) of all times within an iteration in which a circuit is dark.

        What began in the iteration before stands at the end of this one, which is as long.
        """
        row = np.flatnonzero(self.start_ms > self.setup_ms)
        begin, end = self.setup_ms[row], self.start_ms[row]
        early = np.flatnonzero(begin < 0)
        row = np.concatenate([row, row[early]])
        end = np.concatenate([end, np.full(len(early), period_ms)])
        begin = np.concatenate([np.maximum(begin, 0.0), begin[early] + period_ms])
        lasts = np.flatnonzero(end > begin)
        return row[lasts], begin[lasts], end[lasts]

    @staticmethod
    def none() -> Circuits:
        """Return no circuits at all."""
        i, f = np.zeros(0, np.int32), np.zeros(0)
        return Circuits(i, i, i, i, np.zeros(0, np.bool_), i, i, f, f, f)

    @staticmethod
    def at(
        graph: TransferGraph,
        ports: BookedPorts,
        start_ms: FloatArray,
        end_ms: FloatArray,
        delay_ms: float,
    ) -> Circuits:
        """Return the circuits of transfers that run at given times; a port that changes is dark up to the start."""
        node = ports.node
        source, begin = graph.source[node], start_ms[node]
        rows = np.lexsort((ports.source_port, source, ports.switch, begin))
        return Circuits(
            switch=ports.switch[rows],
            source=source[rows],
            destination=graph.destination[node][rows],
            source_port=ports.source_port[rows],
            destination_port=ports.destination_port[rows],
            setup_ms=np.where(ports.changed, begin - delay_ms, begin)[rows],
            start_ms=begin[rows],
            end_ms=end_ms[node][rows],
            node=node[rows],
            changed=ports.changed[rows],
        )


@dataclass(frozen=True)
class Layout:
    """Circuits fixed before the job.

    Attributes
    ----------
    circuits
        Matrix servers x servers: parallel circuits from source (row) to destination (column); they
        add up.
    routes
        For (source, destination) the servers a transfer passes, both ends included, one or more
        equal-share paths: ``routes[(a, b)] == ((a, c, b),)``. A pair that never talks may be
        absent.
    name
        How it was made, in words.
    """

    circuits: NDArray[np.int32]
    routes: dict[tuple[int, int], tuple[tuple[int, ...], ...]]
    name: str = ""

    @property
    def servers(self) -> int:
        """Number of servers."""
        return len(self.circuits)

    @cached_property
    def links(self) -> tuple[IntArray, IntArray, IntArray]:
        """Return (source, destination, circuits) of every link, by source, then destination."""
        source, destination = np.nonzero(self.circuits)
        return (
            source.astype(np.int32),
            destination.astype(np.int32),
            self.circuits[source, destination].astype(np.int32),
        )


@dataclass(frozen=True)
class PathRates:
    """What fixed circuits give to the transfers that share them: the proof that an execution keeps to their speed.

    A transfer is split evenly over the paths of its pair of servers; all that are under way on a
    path at once get the same rate.

    Attributes
    ----------
    source, destination
        Ends of each path.
    hop_path, hop_link
        Which links of ``Layout.links`` a path crosses, in rows.
    path, begin_ms, end_ms, bytes_per_ms
        The rate of one transfer on a path from when until when, in rows; none where nobody sends.
    """

    source: IntArray
    destination: IntArray
    hop_path: IntArray
    hop_link: IntArray
    path: IntArray
    begin_ms: FloatArray
    end_ms: FloatArray
    bytes_per_ms: FloatArray


@dataclass(frozen=True)
class Execution:
    """One training iteration as it ran: task and circuit intervals on one clock, in ms.

    Where circuits stay fixed and transfers share them, ``layout`` says which there are, ``rates``
    what each path gives (where they were recorded), and ``circuits`` is empty.
    """

    graph: TransferGraph
    cluster: Cluster
    start_ms: FloatArray
    end_ms: FloatArray
    circuits: Circuits
    layout: Layout | None = None
    rates: PathRates | None = None

    @property
    def makespan_ms(self) -> float:
        """End of the last task."""
        return float(self.end_ms.max()) if len(self.end_ms) else 0.0
