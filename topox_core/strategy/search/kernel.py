"""One iteration in compiled code: devices and links serve what is ready first, one thing at a time.

No task graph is built: partitions, their exchanges and their all-reduces are walked straight from
the operators, so that a search can afford thousands of iterations a second.
"""

from typing import NamedTuple

import numpy as np

from topox_core.compiled import compiled
from topox_core.model.arrays.heap import pop, push
from topox_core.model.transfer_graph import FloatArray, IntArray


class Placed(NamedTuple):
    """Of each operator in the strategy: its partitions, its first server, and its times."""

    parts: IntArray
    start: IntArray
    forward_ms: FloatArray
    backward_ms: FloatArray


class Exchanged(NamedTuple):
    """The edges between operators, their numbers by producer and by consumer, and the weights by operator."""

    producer: IntArray
    consumer: IntArray
    sample_bytes: FloatArray
    out_ptr: IntArray
    out_edge: IntArray
    in_ptr: IntArray
    in_edge: IntArray
    weight_ptr: IntArray
    weight_bytes: FloatArray


class Routes(NamedTuple):
    """The links from server a to b at ``route_ptr[a * servers + b]``, and each link's ms a byte.

    The strides of the rings of a group of g members are at ``ring_ptr[g]``.
    """

    servers: int
    route_ptr: IntArray
    route_link: IntArray
    byte_ms: FloatArray
    latency_ms: float
    ring_ptr: IntArray
    ring_stride: IntArray


@compiled
def _arrived(
    node: int,
    now: float,
    ready: FloatArray,
    missing: IntArray,
    keys: FloatArray,
    items: IntArray,
    waiting: int,
) -> int:
    """Give a partition one thing it waited for; return how many wait for their turn, it among them after the last."""
    ready[node] = max(ready[node], now)
    missing[node] -= 1
    if missing[node] > 0:
        return waiting
    return push(keys, items, 0, waiting, ready[node], node)


@compiled
def iteration_ms(samples: int, placed: Placed, exchanged: Exchanged, routes: Routes) -> float:
    """Return when the last task of one iteration ends, in ms.

    Whatever is ready first is served first (then: forward before backward, operators in order,
    exchanges in the order they arose), as in FlexNet. A transfer walks the links of its route
    cut-through: it asks for each when its head has come through the one before, waits its turn, and
    holds it for its bytes. An all-reduce of S bytes over g servers is, on each of its k rings, one
    transfer of 2(g-1)/g * S/k bytes per server to the one ``stride`` members on.
    """
    # Taken apart here once: reading an array from a record in the loop costs as much as its work.
    parts, start, forward_ms, backward_ms = placed
    (
        producer,
        consumer,
        sample_bytes,
        out_ptr,
        out_edge,
        in_ptr,
        in_edge,
        weight_ptr,
        weight_bytes,
    ) = exchanged
    servers, route_ptr, route_link, byte_ms, latency_ms, ring_ptr, ring_stride = routes
    count = len(parts)
    first = np.zeros(count + 1, np.int32)
    for k in range(count):
        first[k + 1] = first[k] + parts[k]
    total = first[count]
    owner = np.empty(total, np.int32)
    for k in range(count):
        owner[first[k] : first[k + 1]] = k

    # What each partition still waits for; transfers are numbered as they arise, after the 2 * total
    # compute tasks.
    missing = np.zeros(2 * total, np.int32)
    missing[total:] = 1
    most = 0
    for e in range(len(producer)):
        a, b = producer[e], consumer[e]
        for i in range(parts[a]):
            for j in range(
                i * parts[b] // parts[a], ((i + 1) * parts[b] + parts[a] - 1) // parts[a]
            ):
                missing[first[b] + j] += 1
                missing[total + first[a] + i] += 1
                most += 2
    for k in range(count):
        if parts[k] > 1:
            most += (
                (weight_ptr[k + 1] - weight_ptr[k])
                * parts[k]
                * (ring_ptr[parts[k] + 1] - ring_ptr[parts[k]])
            )
    source = np.empty(most, np.int32)
    destination = np.empty(most, np.int32)
    size_bytes = np.empty(most)
    target = np.empty(most, np.int32)
    hop = np.zeros(most, np.int32)
    ended = np.zeros(most)
    transfers = 0

    keys, items = np.empty(2 * total + most), np.empty(2 * total + most, np.int32)
    waiting = 0
    ready = np.zeros(2 * total)
    for i in range(total):
        if missing[i] == 0:
            waiting = push(keys, items, 0, waiting, 0.0, i)
    unreduced = parts.copy()
    reduce_at = np.zeros(count)
    device_free = np.zeros(servers)
    link_free = np.zeros(len(byte_ms))
    last = 0.0

    while waiting > 0:
        now, item = keys[0], pop(keys, items, 0, waiting)
        waiting -= 1
        if item >= 2 * total:  # a transfer
            x = item - 2 * total
            pair = source[x] * servers + destination[x]
            if route_ptr[pair] + hop[x] < route_ptr[pair + 1]:
                link = route_link[route_ptr[pair] + hop[x]]
                head = max(now, link_free[link]) + latency_ms
                link_free[link] = head + size_bytes[x] * byte_ms[link]
                ended[x] = max(ended[x], link_free[link])
                hop[x] += 1
                if route_ptr[pair] + hop[x] < route_ptr[pair + 1]:
                    waiting = push(keys, items, 0, waiting, head, item)
                    continue
            end = max(now, ended[x])
            last = max(last, end)
            node = target[x]
            if node >= 0:
                waiting = _arrived(node, end, ready, missing, keys, items, waiting)
            continue

        back = item >= total
        part = item - total if back else item
        k = owner[part]
        i = part - first[k]
        server = (start[k] + i * (servers // parts[k])) % servers
        begin = max(now, device_free[server])
        end = begin + (backward_ms[k] if back else forward_ms[k])
        device_free[server] = end
        last = max(last, end)

        # To the partitions that share samples: activations to consumers, gradients to producers.
        low, high = (in_ptr[k], in_ptr[k + 1]) if back else (out_ptr[k], out_ptr[k + 1])
        for r in range(low, high):
            e = in_edge[r] if back else out_edge[r]
            other = producer[e] if back else consumer[e]
            p, q = parts[k], parts[other]
            for j in range(i * q // p, ((i + 1) * q + p - 1) // p):
                node = first[other] + j + (total if back else 0)
                there = (start[other] + j * (servers // q)) % servers
                if there == server:
                    waiting = _arrived(node, end, ready, missing, keys, items, waiting)
                    continue
                shared = min((i + 1) * samples // p, (j + 1) * samples // q) - max(
                    i * samples // p, j * samples // q
                )
                source[transfers], destination[transfers], target[transfers] = server, there, node
                size_bytes[transfers] = shared * sample_bytes[e]
                waiting = push(keys, items, 0, waiting, end, 2 * total + transfers)
                transfers += 1

        if not back:
            waiting = _arrived(total + part, end, ready, missing, keys, items, waiting)
            continue
        reduce_at[k] = max(reduce_at[k], end)
        unreduced[k] -= 1
        members = parts[k]
        if unreduced[k] > 0 or members == 1:
            continue
        stride = servers // members
        rings = ring_ptr[members + 1] - ring_ptr[members]
        for w in range(weight_ptr[k], weight_ptr[k + 1]):
            for r in range(ring_ptr[members], ring_ptr[members + 1]):
                for m in range(members):
                    source[transfers] = (start[k] + m * stride) % servers
                    destination[transfers] = (
                        start[k] + (m + ring_stride[r]) % members * stride
                    ) % servers
                    target[transfers] = -1
                    size_bytes[transfers] = weight_bytes[w] * 2 * (members - 1) / members / rings
                    waiting = push(keys, items, 0, waiting, reduce_at[k], 2 * total + transfers)
                    transfers += 1
    return last
