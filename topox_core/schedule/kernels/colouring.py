"""Per-slot switch assignment: balanced edge colouring of each slot's circuits, keeping what can be kept.

A slot's circuits are a bipartite multigraph, out-sides by in-sides, of degree at most C = N_OCS *
k. Koenig: C colours suffice (a new edge finds a free colour at both ends, or an alternating path is
swapped). De Werra: colours can be balanced by swapping paths of two colours, so a total of at most
N_OCS * d_OCS meets eq. 7. Colour c stands for port ``c % k`` on switch ``c // k``.
"""

import numpy as np

from topox_core.compiled import compiled
from topox_core.schedule.problem import Int, Int32


@compiled
def path_of(vertex: int, side: int, c: int, other: int, at: Int32, ends: Int32) -> Int32:
    """Return the edges of the path of colours ``c``, ``other``, ``c``, ... that begins at a vertex.

    The vertex must not be inside the path, i.e. it has no ``other`` edge.
    """
    path, size = np.empty(2 * at.shape[1], np.int32), 0  # no server comes twice on one side
    edge = at[side, vertex, c]
    while edge >= 0:
        path[size] = edge
        size += 1
        side = 1 - side
        c, other = other, c
        edge = at[side, ends[side, edge], c]
    return path[:size]


@compiled
def swap(path: Int32, c: int, other: int, at: Int32, ends: Int32, colour: Int32) -> None:
    """Swap the two colours of a path's edges."""
    for e in path:
        at[0, ends[0, e], colour[e]] = -1
        at[1, ends[1, e], colour[e]] = -1
    for e in path:
        colour[e] = other if colour[e] == c else c
        at[0, ends[0, e], colour[e]] = e
        at[1, ends[1, e], colour[e]] = e


@compiled
def place(e: int, k: int, at: Int32, ends: Int32, colour: Int32, last: Int32, size: Int32) -> None:
    """Colour one new edge: the circuit its ports held last if free, else a common free colour, else Koenig's swap."""
    x, y = ends[0, e], ends[1, e]
    free_x, free_y, common = -1, -1, -1
    lightest = 0
    for c in range(at.shape[2]):
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
        path = path_of(y, 1, free_x, free_y, at, ends)
        swap(path, free_x, free_y, at, ends, colour)
        common = free_x
    colour[e] = common
    at[0, x, common] = e
    at[1, y, common] = e


@compiled
def balance(k: int, limit: int, at: Int32, ends: Int32, colour: Int32) -> None:
    """Swap paths between colours until no switch carries more than ``limit`` circuits (eq. 7)."""
    vertices, colours = at.shape[1:]
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
                if begins:
                    path = path_of(v, side, heavy, light, at, ends)
                    if len(path) % 2 == 1:  # it has one more edge of the heavy colour
                        swap(path, heavy, light, at, ends, colour)
                        done = True
        if not done:
            return


@compiled
def colour_slots(
    ends: Int32, first: Int, end: Int, servers: int, colours: int, k: int, limit: int
) -> Int:
    """Return which switch carries an edge when: pieces as columns (edge, colour, first slot, end slot).

    Edges are circuits from server ``ends[0]`` to ``ends[1]`` that last from slot ``first`` to ``end``,
    and keep their colour from slot to slot unless an alternating path must move them.
    """
    edges = len(first)
    begins, finishes = np.argsort(first, kind="mergesort"), np.argsort(end, kind="mergesort")
    at = np.full((2, servers, colours), -1, np.int32)
    last = np.full((2, servers, colours), -1, np.int32)
    colour = np.full(edges, -1, np.int32)
    shown = np.full(edges, -1, np.int32)  # colour of the open piece
    since = np.zeros(edges, np.int64)
    active = np.empty(edges, np.int32)
    where = np.full(edges, -1, np.int32)
    count = 0
    load = np.zeros(colours // k, np.int32)
    pieces = [(0, 0, 0, 0)]  # so that its type is known
    b, f = 0, 0
    while f < edges:
        t = end[finishes[f]]
        if b < edges:
            t = min(t, first[begins[b]])
        while f < edges and end[finishes[f]] == t:
            e = finishes[f]
            f += 1
            c = colour[e]
            x, y = ends[0, e], ends[1, e]
            at[0, x, c], at[1, y, c] = -1, -1
            last[0, x, c], last[1, y, c] = y, x
            load[c // k] -= 1
            pieces.append((int(e), int(c), int(since[e]), int(t)))
            active[where[e]] = active[count - 1]
            where[active[count - 1]] = where[e]
            count -= 1
        moved = False
        while b < edges and first[begins[b]] == t:
            e = begins[b]
            b += 1
            place(e, k, at, ends, colour, last, load)
            load[colour[e] // k] += 1
            since[e] = t
            active[count] = e
            where[e] = count
            count += 1
            moved = True
        if not moved:
            continue
        if limit < servers * k:
            balance(k, limit, at, ends, colour)
        load[:] = 0
        for i in range(count):
            e = active[i]
            load[colour[e] // k] += 1
            if shown[e] >= 0 and shown[e] != colour[e] and since[e] < t:
                pieces.append((int(e), int(shown[e]), int(since[e]), int(t)))
                x, y = ends[0, e], ends[1, e]
                last[0, x, shown[e]], last[1, y, shown[e]] = y, x
                since[e] = t
            shown[e] = colour[e]
    return np.array(pieces)[1:].T
