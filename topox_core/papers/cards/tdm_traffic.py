"""The TDM drafts' section II.B: which collective sends most, which needs most links, and where that turns over."""

from topox_core.papers.card import CardRun, Rows, Settings
from topox_core.tdm.mixes.deployment import MODELS, Model
from topox_core.tdm.model.jobs import Collective, Job, Reading
from topox_core.tdm.model.traffic import between_pods_gbit

PODS = 8
# Those that send most come first, those that need most links last.
COLLECTIVES: tuple[Collective, ...] = ("parameter_server", "ring_all_reduce", "all_to_all")


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


def rows(run: CardRun) -> Rows:
    context, units = int(run.settings["context"]), PODS * int(run.settings["each"])
    for model in MODELS.values():
        server, ring, experts = (sent_gbit(model, one, run.settings) for one in COLLECTIVES)
        for series, more, less in (
            ("ps_over_ring", server, ring),
            ("ring_over_all", ring, experts),
        ):
            yield run.row(series, model.name, more / less, more=more, less=less, units=units)
        yield run.row("turn", model.name, context * ring / experts, units=units)
    sends = (_job(model, one, run.settings) for one in reversed(COLLECTIVES))
    pairs = [
        int((between_pods_gbit(one, Reading(), tuple(range(PODS))) > 0).sum()) for one in sends
    ]
    for item, many, fewer in zip(("all-to-all", "ring"), pairs[:2], pairs[1:], strict=True):
        yield run.row("links", item, many, follows=many > fewer, fewer=fewer, units=units)
    yield run.row("links", "parameter server", pairs[2], units=units)
