"""Per-slot switch assignment: balanced edge colouring of each slot's circuits, keeping what can be kept.

A slot's circuits are a bipartite multigraph, out-sides by in-sides, of degree at most C = N_OCS *
k. Koenig: C colours suffice (a new edge finds a free colour at both ends, or an alternating path is
swapped). De Werra: colours can be balanced by swapping paths of two colours, so a total of at most
N_OCS * d_OCS meets eq. 7. Colour c stands for port ``c % k`` on switch ``c // k``.
"""

from __future__ import annotations

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int, Int32


@compiled
def swap_path(
    vertex: int,
    side: int,
    c: int,
    other: int,
    at: Int32,
    x_of: Int32,
    y_of: Int32,
    colour: Int32,
    apply: bool,
) -> int:
    """Walk the path of colours ``c``, ``other``, ... that begins at a vertex with its ``c`` edge.

    Return the surplus of ``c`` edges over ``other`` edges on it; swap the two colours if ``apply``.
    The vertex must not be inside the path, i.e. it has no ``other`` edge.
    """
    surplus = 0
    v, s, take = vertex, side, c
    previous = -1
    while True:
        edge = at[s, v, take]
        if edge < 0 or edge == previous:
            break
        surplus += 1 if take == c else -1
        s = 1 - s
        v = y_of[edge] if s == 1 else x_of[edge]
        previous = edge
        take = other if take == c else c
    if apply:
        # Second walk: lift the edges off, then lay them down in the other colour.
        v, s, take = vertex, side, c
        path = np.empty(abs(surplus) + 2, np.int32)
        size = 0
        previous = -1
        while True:
            edge = at[s, v, take]
            if edge < 0 or edge == previous:
                break
            if size == len(path):
                longer = np.empty(2 * size, np.int32)
                longer[:size] = path
                path = longer
            path[size] = edge
            size += 1
            s = 1 - s
            v = y_of[edge] if s == 1 else x_of[edge]
            previous = edge
            take = other if take == c else c
        for i in range(size):
            e = path[i]
            at[0, x_of[e], colour[e]] = -1
            at[1, y_of[e], colour[e]] = -1
        for i in range(size):
            e = path[i]
            colour[e] = other if colour[e] == c else c
            at[0, x_of[e], colour[e]] = e
            at[1, y_of[e], colour[e]] = e
    return surplus


@compiled
def place(
    e: int,
    colours: int,
    k: int,
    at: Int32,
    x_of: Int32,
    y_of: Int32,
    colour: Int32,
    last: Int32,
    size: Int32,
) -> None:
    """Colour one new edge: the circuit its ports held last if free, else a common free colour, else Koenig's swap."""
    x, y = x_of[e], y_of[e]
    free_x, free_y, common = -1, -1, -1
    lightest = 0
    for c in range(colours):
        x_free, y_free = at[0, x, c] < 0, at[1, y, c] < 0
        if x_free and free_x < 0:
            free_x = c
        if y_free and free_y < 0:
            free_y = c
        if x_free and y_free:
            if last[0, x, c] == y and last[1, y, c] == x:
                common = c
                break
            if common < 0 or size[c // k] < lightest:
                common = c
                lightest = size[c // k]
    if common < 0:
        # Colour free_x is free at x, free_y at y: swap them on the path that leaves y with free_x.
        swap_path(y, 1, free_x, free_y, at, x_of, y_of, colour, True)
        common = free_x
    colour[e] = common
    at[0, x, common] = e
    at[1, y, common] = e


@compiled
def balance(
    colours: int, k: int, limit: int, at: Int32, x_of: Int32, y_of: Int32, colour: Int32
) -> None:
    """Swap paths between colours until no switch carries more than ``limit`` circuits (eq. 7)."""
    vertices = at.shape[1]
    switches = colours // k
    while True:
        size = np.zeros(colours, np.int32)
        for c in range(colours):
            for v in range(vertices):
                if at[0, v, c] >= 0:
                    size[c] += 1
        load = np.zeros(switches, np.int32)
        for c in range(colours):
            load[c // k] += size[c]
        worst, best = int(np.argmax(load)), int(np.argmin(load))
        if load[worst] <= limit or load[worst] - load[best] <= 1:
            return
        heavy, light = worst * k, best * k
        for c in range(worst * k, worst * k + k):
            if size[c] > size[heavy]:
                heavy = c
        for c in range(best * k, best * k + k):
            if size[c] < size[light]:
                light = c
        done = False
        for side in range(2):
            for v in range(vertices):
                begins = not done and at[side, v, heavy] >= 0 and at[side, v, light] < 0
                if begins and swap_path(v, side, heavy, light, at, x_of, y_of, colour, False) == 1:
                    swap_path(v, side, heavy, light, at, x_of, y_of, colour, True)
                    done = True
        if not done:
            return


@compiled
def colour_slots(
    x_of: Int32, y_of: Int32, first: Int, end: Int, servers: int, colours: int, k: int, limit: int
) -> tuple[Int32, Int32, Int, Int, int]:
    """Return pieces (edge, colour, first slot, end slot) and their number: which switch carries an edge when.

    Edges are circuits that last from slot ``first`` to ``end``, and keep their colour from slot to
    slot unless an alternating path must move them.
    """
    edges = len(x_of)
    begins = np.argsort(first)
    ends = np.argsort(end)
    at = np.full((2, servers, colours), -1, np.int32)
    last = np.full((2, servers, colours), -1, np.int32)
    colour = np.full(edges, -1, np.int32)
    shown = np.full(edges, -1, np.int32)  # colour of the open piece
    since = np.zeros(edges, np.int64)
    active = np.empty(edges, np.int32)
    where = np.full(edges, -1, np.int32)
    count = 0
    load = np.zeros(colours // k, np.int32)
    room = 2 * edges + 16
    out_edge = np.empty(room, np.int32)
    out_colour = np.empty(room, np.int32)
    out_first = np.empty(room, np.int64)
    out_end = np.empty(room, np.int64)
    pieces = 0
    b, f = 0, 0
    while f < edges:
        t = end[ends[f]]
        if b < edges:
            t = min(t, first[begins[b]])
        while f < edges and end[ends[f]] == t:
            e = ends[f]
            f += 1
            c = colour[e]
            at[0, x_of[e], c] = -1
            at[1, y_of[e], c] = -1
            last[0, x_of[e], c] = y_of[e]
            last[1, y_of[e], c] = x_of[e]
            load[c // k] -= 1
            if pieces == room:
                out_edge, out_colour = (
                    np.append(out_edge, out_edge),
                    np.append(out_colour, out_colour),
                )
                out_first, out_end = np.append(out_first, out_first), np.append(out_end, out_end)
                room *= 2
            out_edge[pieces], out_colour[pieces], out_first[pieces], out_end[pieces] = (
                e,
                c,
                since[e],
                t,
            )
            pieces += 1
            active[where[e]] = active[count - 1]
            where[active[count - 1]] = where[e]
            count -= 1
        moved = False
        while b < edges and first[begins[b]] == t:
            e = begins[b]
            b += 1
            place(e, colours, k, at, x_of, y_of, colour, last, load)
            load[colour[e] // k] += 1
            since[e] = t
            active[count] = e
            where[e] = count
            count += 1
            moved = True
        if not moved:
            continue
        if limit < servers * k:
            balance(colours, k, limit, at, x_of, y_of, colour)
        load[:] = 0
        for i in range(count):
            e = active[i]
            load[colour[e] // k] += 1
            if shown[e] >= 0 and shown[e] != colour[e] and since[e] < t:
                if pieces == room:
                    out_edge, out_colour = (
                        np.append(out_edge, out_edge),
                        np.append(out_colour, out_colour),
                    )
                    out_first, out_end = (
                        np.append(out_first, out_first),
                        np.append(out_end, out_end),
                    )
                    room *= 2
                out_edge[pieces], out_colour[pieces], out_first[pieces], out_end[pieces] = (
                    e,
                    shown[e],
                    since[e],
                    t,
                )
                pieces += 1
                last[0, x_of[e], shown[e]] = y_of[e]
                last[1, y_of[e], shown[e]] = x_of[e]
                since[e] = t
            shown[e] = colour[e]
    return out_edge, out_colour, out_first, out_end, pieces
