"""Circuits dealt to the bottleneck: each goes where the slowest pair or packet port gains most."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from topox_core.compiled import compiled
from topox_core.model.transfer_graph import FloatArray

# A change of one pair touches its two directions and four packet ports; one more is kept for the rest.
KEPT = 7
MIN_GAIN = 1e-12


@compiled
def largest(
    pair_time: FloatArray, port_time: FloatArray, value: FloatArray, item: NDArray[np.int64]
) -> None:
    """Write the largest times and their places: pairs by number, then packet ports."""
    value[:] = -1.0
    item[:] = -1
    pairs = pair_time.size
    flat = pair_time.reshape(pairs)
    for i in range(pairs + len(port_time)):
        time = flat[i] if i < pairs else port_time[i - pairs]
        if time <= value[KEPT - 1]:
            continue
        at = KEPT - 1
        while at > 0 and value[at - 1] < time:
            value[at] = value[at - 1]
            item[at] = item[at - 1]
            at -= 1
        value[at] = time
        item[at] = i


@compiled
def bottleneck_circuits(wanted: FloatArray, ports: int, packet_ports: int) -> NDArray[np.int32]:
    """Return symmetric circuits dealt greedily, each to where the largest time, then the sum of squares, falls most.

    The time of a pair with circuits is its bytes over them; of a server's packet port, out and in
    apart, the bytes of its pairs without circuits over ``packet_ports``. A circuit goes both ways
    and takes one port at either end.

    Parameters
    ----------
    wanted
        Matrix servers x servers of bytes.
    ports, packet_ports
        Optical and packet ports of every server. Without packet ports a pair that has no circuit
        counts as if it had a millionth of one.
    """
    n = len(wanted)
    share = float(packet_ports) if packet_ports > 0 else 1e-6
    circuits = np.zeros((n, n), np.int32)
    left = np.full(n, ports, np.int64)
    pair_time = np.zeros((n, n))
    port_time = np.zeros(2 * n)
    for a in range(n):
        for b in range(n):
            if a != b:
                port_time[a] += wanted[a, b] / share
                port_time[n + b] += wanted[a, b] / share
    value, item = np.zeros(KEPT), np.zeros(KEPT, np.int64)
    touched, becomes = np.zeros(6, np.int64), np.zeros(6)
    while True:
        largest(pair_time, port_time, value, item)
        most = max(value[0], 0.0)
        best_a, best_b, best_most, best_gain = -1, -1, most, 0.0
        for a in range(n):
            for b in range(a + 1, n):
                if left[a] == 0 or left[b] == 0 or wanted[a, b] + wanted[b, a] <= 0.0:
                    continue
                k = circuits[a, b]
                touched[0], touched[1] = a * n + b, b * n + a
                becomes[0], becomes[1] = wanted[a, b] / (k + 1), wanted[b, a] / (k + 1)
                changes = 2
                if k == 0:
                    for end in range(4):
                        # Out of a, out of b, into a, into b.
                        sent = wanted[a, b] if end == 0 or end == 3 else wanted[b, a]
                        place = (a if end % 2 == 0 else b) + (0 if end < 2 else n)
                        touched[2 + end] = n * n + place
                        becomes[2 + end] = max(0.0, port_time[place] - sent / share)
                    changes = 6
                new_most, gain = 0.0, 0.0
                for i in range(changes):
                    at = touched[i]
                    was = pair_time[at // n, at % n] if at < n * n else port_time[at - n * n]
                    gain += was * was - becomes[i] * becomes[i]
                    new_most = max(new_most, becomes[i])
                for i in range(KEPT):
                    other = True
                    for j in range(changes):
                        if touched[j] == item[i]:
                            other = False
                    if other:
                        new_most = max(new_most, value[i])
                        break
                lower = new_most < best_most - MIN_GAIN * most
                equal = new_most <= best_most + MIN_GAIN * most
                if lower or (equal and gain > best_gain + MIN_GAIN * most * most):
                    best_a, best_b, best_most, best_gain = a, b, new_most, gain
        if best_a < 0:
            return circuits
        a, b = best_a, best_b
        if circuits[a, b] == 0:
            port_time[a] = max(0.0, port_time[a] - wanted[a, b] / share)
            port_time[b] = max(0.0, port_time[b] - wanted[b, a] / share)
            port_time[n + b] = max(0.0, port_time[n + b] - wanted[a, b] / share)
            port_time[n + a] = max(0.0, port_time[n + a] - wanted[b, a] / share)
        circuits[a, b] += 1
        circuits[b, a] += 1
        left[a] -= 1
        left[b] -= 1
        pair_time[a, b] = wanted[a, b] / circuits[a, b]
        pair_time[b, a] = wanted[b, a] / circuits[a, b]
