"""Ports of servers on switches as numbers, and which circuits each port holds in turn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.integer[Any]]
Int = NDArray[np.int64]


@dataclass(frozen=True)
class PortNumbers:
    """The out-port and the in-port of each transfer: one number for one port, wherever it is.

    An out-port and an in-port have different numbers, unless a half-duplex port is both.
    """

    out_port: Int
    in_port: Int
    half_duplex: bool

    @staticmethod
    def of(
        ends: tuple[Whole, Whole],
        carried: tuple[Whole, Whole, Whole],
        shape: tuple[int, int],
        half_duplex: bool,
    ) -> PortNumbers:
        """Return the numbers.

        Parameters
        ----------
        ends
            Source and destination of each transfer.
        carried
            Its switch, and the ports there of its source and its destination, numbered within
            (server, switch).
        shape
            Switches, and ports of a server on each (or more).
        """
        switches, k = shape
        switch, *ports = carried
        out_port, in_port = (
            (server.astype(np.int64) * switches + switch) * k + port
            for server, port in zip(ends, ports, strict=True)
        )
        if not half_duplex:
            in_port = in_port + int(max(out_port.max(initial=-1), in_port.max(initial=-1))) + 1
        return PortNumbers(out_port, in_port, half_duplex)

    def changed(self, start: Whole | NDArray[np.float64], repeats: bool) -> NDArray[np.bool_]:
        """Return which transfers change a circuit: one of the two ports held another one before.

        Where the iteration repeats, a port begins with its last circuit; else its first one stands
        before the iteration begins and is no change.
        """
        port, transfer, circuit = self.in_turn(start)
        changed = np.zeros(len(self.out_port), np.bool_)
        changed[transfer[1:][(port[1:] == port[:-1]) & (circuit[1:] != circuit[:-1])]] = True
        if repeats:
            first, last = self.ends_of_turns(port)
            changed[transfer[first[circuit[first] != circuit[last]]]] = True
        return changed

    @staticmethod
    def ends_of_turns(port: Int) -> tuple[Int, Int]:
        """Return where the rows of :meth:`in_turn` begin and end for each port."""
        cuts = np.flatnonzero(np.diff(port)) + 1
        return np.r_[0, cuts][: len(port)], np.r_[cuts, len(port)][: len(port)] - 1

    def in_turn(self, start: Whole | NDArray[np.float64]) -> tuple[Int, Int, Int]:
        """Return (port, transfer, circuit) port by port in the order of time; circuits are numbers, too.

        Two transfers of one port are on one circuit if their other ports are the same and they go
        the same way.
        """
        port = np.concatenate([self.out_port, self.in_port])
        way = 1 if self.half_duplex else 0
        circuit = np.concatenate([2 * self.in_port, 2 * self.out_port + way])
        transfer = np.tile(np.arange(len(self.out_port)), 2)
        order = np.lexsort((np.tile(start, 2), port))
        return port[order], transfer[order], circuit[order]
