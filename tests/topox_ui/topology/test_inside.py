"""The section on one collective: its ways in numbers, the ports of the chosen one, and a link that restores it."""

from tests.topox_ui.conftest import address, chart, metric, words
from topox_core.fabrics.one_collective import OneCollective
from topox_core.text.numbers import time

TOPOLOGY = "pages/4_Topology.py"


def plain(ms: float) -> str:
    return time(ms).replace("\u00a0", " ")


def test_every_way_stands_beside_the_others(visit):
    """Sample moe has two ports of 360 Gbit/s; 360 MB take 8 ms on one."""
    at = visit(TOPOLOGY, sample="moe", tensor_mb="360", switch_ms="0.8")
    assert not at.exception and not at.error
    one = OneCollective("all_to_all", "pairwise", 8, 2, 8.0, 0.0, 0.8)
    assert metric(at, "All ports together") == plain(one.together().makespan_ms)
    assert metric(at, "One port a step") == plain(one.one_port_a_step().makespan_ms)
    assert metric(at, "Uneven split") == plain(one.split().makespan_ms) == "6.9 ms"
    assert metric(at, "A ring on each port") == "–"
    assert "Uneven parts hide set-ups" in words(at)
    bars = [trace for trace in chart(at, "inside")["data"] if trace["width"] > 0.5]
    assert len(bars) == 7
    assert address(at)["tensor_mb"] == "360"


def test_a_link_brings_the_collective_back_and_rings_win_large_all_reduces(visit):
    at = visit(
        TOPOLOGY, sample="moe", collective="all_reduce", members="16", collective_way="one_port"
    )
    assert not at.exception and not at.error
    assert "Rings on all ports change no circuit and win" in words(at)
    assert address(at)["collective_way"] == "one_port" and address(at)["members"] == "16"
    assert "One row a port: the steps of all-reduce with one port a step" in str(
        at.get("plotly_chart")[-1].proto
    )
