"""SWOT's reduction against static circuits, beside ours: one collective with circuits that change inside it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from topox_core.fabrics.compare import run_one, run_with_best_lowering
from topox_core.fabrics.run import JobRequest
from topox_core.model.cluster import Cluster
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.papers.abstract_only import AbstractOnly
from topox_core.papers.card import Card, Choice, Row, Settings
from topox_core.papers.claim import Reading
from topox_core.papers.direct import unprinted
from topox_core.schedule.settings import Settings as PlannerSettings

PAPER = AbstractOnly(
    "swot-inside",
    "SWOT (arXiv 2510.19322)",
    "uneven parts and set-ups behind other ports are modelled, forwarding over circuits that stand (bypassing) is not",
)
MEMBERS, GBPS = 8, 100.0
MEGABYTES = (1.0, 10.0, 100.0, 1000.0)
KINDS = {"all_to_all": "all-to-all", "all_reduce": "all-reduce"}
SERIES = {
    "all_to_all": "All-to-all, less time than on fixed circuits",
    "all_reduce": "All-reduce, less time than on fixed circuits",
    "most": "Most of all these",
}
CHOICES = (
    Choice(
        "delay_ms",
        "Delay",
        "What a change of a circuit takes.",
        ((0.01, "10 µs"), (0.1, "0.1 ms"), (1.0, "1 ms")),
        0.01,
    ),
    Choice("ports", "Ports", "Of each of eight members.", ((2, "2"), (4, "4")), 2),
)


def saved(kind: str, megabytes: float, ports: int, delay_ms: float) -> float:
    """Return by which share switching inside a collective shortens it against fixed circuits."""
    members = tuple(range(MEMBERS))
    task = Task("c", kind, (), members=members, size_bytes=1e6 * megabytes)
    cluster = Cluster(MEMBERS, ports, 1, MEMBERS * ports, GBPS).changed(reconfiguration_ms=delay_ms)
    settings = PlannerSettings.of(engine="list", free=("rings", "algorithm"))
    request = JobRequest(TaskGraph("one collective", (task,)), cluster, settings)
    fixed = run_one("static", request.lowered(settings.lowering)).iteration_ms
    return 1 - run_with_best_lowering("in_collective", request).iteration_ms / fixed


def _rows(settings: Settings) -> Iterator[Row]:
    ports, delay_ms = int(settings["ports"]), float(settings["delay_ms"])
    about = f"{MEMBERS} members, {ports} × {GBPS:g} Gbit/s"
    shares = []
    for kind in KINDS:
        for megabytes in MEGABYTES:
            shares.append(saved(kind, megabytes, ports, delay_ms))
            yield unprinted(kind, f"{megabytes:g} MB", about, 100 * shares[-1], unit="%")
    said = "up to 89.7 %; neither network, nor collective, size or delay is in it"
    yield PAPER.beside("most", "up to", about, 100 * max(shares), said, unit="%")


def _words(rows: Sequence[Row]) -> tuple[str, tuple[str, ...]]:
    most = {kind: max(row.ours for row in rows if row.series == kind) for kind in KINDS}
    reduced = most["all_reduce"]
    rings = f"by up to {reduced:.3g} %" if reduced > 0.05 else "not at all"
    return (
        f"Circuits that change inside a collective shorten an all-to-all by up to {most['all_to_all']:.3g} % against "
        f"fixed circuits, an all-reduce {rings}. The printed 89.7 % has no setting that could be rerun.",
        (
            "Fixed circuits are TopologyFinder's, with forwarding; an all-reduce runs on the rings they were laid for, which never "
            "change.",
        ),
    )


CARD = Card(
    name=PAPER.card,
    title="Switching inside a collective",
    source=PAPER.source,
    shows="Circuits that change between the steps of a collective, messages split unevenly, take up to 89.7 % less time than static "
    "ones.",
    choices=CHOICES,
    series=SERIES,
    row_count=len(KINDS) * len(MEGABYTES) + 1,
    play=PAPER.play(_rows, _words),
    takes_s=2.5,
)
CLAIMS = (
    PAPER.claim(
        "Switching inside a collective takes up to 89.7 % less time than static circuits",
        89.7,
        Reading("most", lambda rows: rows[-1].ours, 78.1),
        "on eight members with two ports",
        "%",
    ),
)
