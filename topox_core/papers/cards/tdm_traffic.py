"""The TDM drafts' section II.B: which collective sends most, which needs most links, and where that turns over."""

from collections.abc import Iterator

from topox_core.papers.card import CardRun, Settings
from topox_core.papers.rows import Row, directed, stated, unprinted
from topox_core.tdm.mixes.deployment import MODELS, Model
from topox_core.tdm.model.jobs import Collective, Job, Reading
from topox_core.tdm.model.traffic import between_pods_gbit

PODS = 8


def sent_gbit(model: Model, collective: Collective, settings: Settings) -> float:
    """Return what a job sends between pods in one iteration; a parameter server pushes and pulls."""
    pushed = between_pods_gbit(
        _job(model, collective, settings),
        Reading(physical_ring=bool(settings["ring"])),
        tuple(range(PODS)),
    ).sum()
    return float(pushed) * (2 if collective == "parameter_server" else 1)


def _job(model: Model, collective: Collective, settings: Settings) -> Job:
    units = PODS * int(settings["each"])
    all_to_all = collective == "all_to_all"
    volume = model.exchange_gbit(int(settings["context"]), units) if all_to_all else model.sync_gbit
    server = 0 if collective == "parameter_server" else None
    return Job(model.name, collective, 0, (int(settings["each"]),) * PODS, volume, 1.0, server)


def rows(run: CardRun) -> Iterator[Row]:
    about = f"{PODS * int(run.settings['each'])} units on {PODS} pods, {int(run.settings['context']):,} tokens"
    pairs: dict[Collective, int] = {}
    for model in MODELS.values():
        server, ring, experts = (
            sent_gbit(model, one, run.settings)
            for one in ("parameter_server", "ring_all_reduce", "all_to_all")
        )
        for series, more, less in (
            ("ps_over_ring", server, ring),
            ("ring_over_all", ring, experts),
        ):
            yield directed(
                series,
                model.name,
                about,
                stated(more / less) == "trend",
                more / less,
                f"“PS > RAR > AllToAll”: {more:,.0f} against {less:,.0f} Gbit per iteration.",
            )
        yield unprinted(
            "turn",
            model.name,
            about,
            int(run.settings["context"]) * ring / experts,
            "What experts exchange grows with the context, what replicas synchronise does not; the drafts name no context.",
            unit="tokens",
        )
        pairs = {
            one: int(
                (
                    between_pods_gbit(_job(model, one, run.settings), Reading(), tuple(range(PODS)))
                    > 0
                ).sum()
            )
            for one in ("all_to_all", "ring_all_reduce", "parameter_server")
        }
    for (one, many), fewer in zip(list(pairs.items())[:2], list(pairs.values())[1:], strict=True):
        yield directed(
            "links",
            {"all_to_all": "all-to-all", "ring_all_reduce": "ring"}[one],
            about,
            many > fewer,
            many,
            f"“AllToAll services exhibit the highest complexity, followed by RAR, and finally PS”: the next one needs {fewer}.",
            unit="pairs",
        )
    yield unprinted("links", "parameter server", about, pairs["parameter_server"], unit="pairs")


def said(run: CardRun) -> dict[str, int]:
    kept = [row.verdict == "trend" for row in run.of("ring_over_all")]
    return {"kept": sum(kept), "models": len(kept)}
