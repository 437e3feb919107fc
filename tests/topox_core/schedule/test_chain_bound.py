"""Changes counted along chains: the rule in plain Python, the bound no lower, and never above what was found."""

from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

import topox_core
from tests.conftest import some
from tests.topox_core.small_graphs import cluster, compute, graph, random_graph, transfer
from topox_core.model.lowering import lower
from topox_core.model.lowering_choices import Lowering
from topox_core.model.transfer_graph import TRANSFER, durations_ms
from topox_core.schedule.bounds.unrounded import circuit_bound
from topox_core.schedule.settings import Settings
from topox_core.schedule.solve import solve

FIRST = Settings.of(engine="list", iteration="first")


def heads_by_rule(nodes, before, length, ends, ports, delay):
    """Return heads in ms: of the transfers just before a task at one side, those from any head on, with their changes."""
    head = {}
    for i in nodes:
        head[i] = max((head[p] + length[p] for p in before[i]), default=0.0)
        sides = defaultdict(list)
        for p in before[i]:
            for side, peer in ends.get(p, ()):
                sides[side].append((head[p], length[p], peer))
        for entries in sides.values():
            for h, _, _ in entries:
                late = [(ms, peer) for first, ms, peer in entries if first >= h]
                longest = {peer: max(ms for ms, other in late if other == peer) for _, peer in late}
                changes = max(0, len(longest) - ports)
                head[i] = max(head[i], h + (sum(ms for ms, _ in late) + changes * delay) / ports)
                # Of one more peers than k rounds of the ports serve, k + 1 follow each other at a port.
                by_length = sorted(longest.values(), reverse=True)
                if (k := (len(by_length) - 1) // ports) > 0:
                    follow = by_length[k * ports - k : k * ports + 1]
                    head[i] = max(head[i], h + sum(follow) + k * delay)
    return head


def rule_ms(graph, servers):
    """Return the longest way through the graph with heads and tails by the rule."""
    length, n = durations_ms(graph, servers), len(graph)
    before = [list(graph.pred_idx[graph.pred_ptr[i] : graph.pred_ptr[i + 1]]) for i in range(n)]
    after = [[] for _ in range(n)]
    for i, preds in enumerate(before):
        for p in preds:
            after[p].append(i)
    ends = {}
    for i in np.flatnonzero((graph.kind == TRANSFER) & (length > 0)):
        s, d = int(graph.source[i]), int(graph.destination[i])
        if servers.duplex == "half":
            ends[i] = ((s, (s, d)), (d, (s, d)))
        else:
            ends[i] = ((("out", s), d), (("in", d), s))
    order, left = [], [len(preds) for preds in before]
    ready = [i for i in range(n) if not left[i]]
    while ready:
        i = ready.pop()
        order.append(i)
        for k in after[i]:
            left[k] -= 1
            if not left[k]:
                ready.append(k)
    given = ends, servers.ports_per_server, servers.reconfiguration_ms
    head = heads_by_rule(order, before, length, *given)
    tail = heads_by_rule(order[::-1], after, length, *given)
    return max(head[i] + length[i] + tail[i] for i in range(n))


@pytest.mark.parametrize("duplex", ["full", "half"])
@pytest.mark.parametrize("seed", some(range(40), quick=6))
def test_the_bound_is_no_lower_than_the_rule_and_no_plan_is_shorter(seed, duplex):
    servers = cluster(
        4,
        ports_per_server=2 + seed % 3,
        switches=1,
        duplex=duplex,
        reconfiguration_ms=seed % 4 * 2.5,
    )
    job = random_graph(seed, tasks=40)
    lowered = lower(job, Lowering())
    bound_ms = circuit_bound(lowered, servers, FIRST).ms
    assert bound_ms >= rule_ms(lowered, servers) * (1 - 1e-12)
    found = solve(job, servers, FIRST)
    assert bound_ms <= found.makespan_ms * (1 + 1e-9)


def test_three_circuits_on_two_ports_follow_each_other_once_however_little_two_would_share():
    # Two of three share a port, a change between them; the least of what must follow comes last.
    servers = cluster(4, ports_per_server=2, switches=2, reconfiguration_ms=10.0)
    tasks = [compute("first", 0, 1.0)]
    for peer, after_ms in ((1, 5.0), (2, 6.0), (3, 7.0)):
        tasks.append(transfer(f"t{peer}", 0, peer, 1.0, "first"))
        tasks.append(compute(f"c{peer}", peer, after_ms, f"t{peer}"))
    job = graph(*tasks)
    bound_ms = circuit_bound(lower(job, Lowering()), servers, FIRST).ms
    assert bound_ms == pytest.approx(1 + 1 + 10 + 1 + 5)
    assert solve(job, servers, FIRST).makespan_ms == pytest.approx(bound_ms)


def test_circuits_no_more_than_ports_have_ports_of_their_own_or_change():
    # Four transfers to one server and one to another: two ports would share them within 2.5 ms, which
    # takes a change.
    servers = cluster(3, ports_per_server=2, switches=2, reconfiguration_ms=10.0)
    tasks = [compute("first", 0, 1.0), transfer("other", 0, 2, 1.0, "first")]
    tasks += [transfer(f"t{k}", 0, 1, 1.0, "first") for k in range(4)]
    job = graph(*tasks)
    for delay_ms, least_ms in ((0.5, 1 + 1 + 0.5 + 1), (10.0, 1 + 4)):
        slow = servers.changed(reconfiguration_ms=delay_ms)
        assert circuit_bound(lower(job, Lowering()), slow, FIRST).ms == pytest.approx(
            least_ms, abs=0.5
        )
        found = solve(job, slow, FIRST)
        assert circuit_bound(lower(job, Lowering()), slow, FIRST).ms <= found.makespan_ms


@pytest.mark.parametrize(("delay_ms", "least_ms"), [(1.0, 80.5), (8.0, 201.7), (100.0, 2041.7)])
def test_a_mixture_of_experts_cannot_pay_where_every_layer_changes_every_circuit(
    delay_ms, least_ms
):
    job, servers = topox_core.load_sample("moe")
    slow = servers.changed(reconfiguration_ms=delay_ms)
    direct = Lowering(algorithm=(("all_to_all", "direct"),))
    assert circuit_bound(lower(job, direct), slow, FIRST).ms >= least_ms
