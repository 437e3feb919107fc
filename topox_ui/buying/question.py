"""The question that the page asks: what is loaded, at whose prices, under which assumptions."""

from __future__ import annotations

from dataclasses import replace

from topox_core.economics.price_sets import PRICE_SETS, SET_BY_SPEED
from topox_core.errors import InputError
from topox_core.studies.buying import Assumptions, Question
from topox_core.studies.keys import Value
from topox_core.studies.subject import digest_of
from topox_ui.answers.case import case_of, listing
from topox_ui.answers.keeping import kept_of
from topox_ui.buying.state import BuyingState, chosen_offers
from topox_ui.state.loading import Loaded, scenario
from topox_ui.state.prices import Prices, cluster_catalogue


def question_now(opened: Loaded) -> Question:
    """Return the question of what is loaded and chosen; raises InputError where it cannot be asked."""
    case = case_of(opened, scenario())
    if case.settings.circuits == "per-slot":
        raise InputError(
            "circuits that may change between slots pay no delay; on the page Schedule let a transfer keep one",
            field="circuits",
        )
    now = BuyingState.now()
    kept = kept_of(opened, replace(case, settings=listing(case.settings)))
    return Question(
        kept.resolved,
        chosen_offers(),
        now.ports,
        now.rivals,
        {**kept.values("scheduled"), **_prices(), "settings.effort": "first"},
        _assumed(now),
        now.by,
    )


def _assumed(now: BuyingState) -> Assumptions:
    usual = Assumptions()
    return Assumptions(
        usual.usd_per_gpu_hour.moved(now.usd_per_gpu_hour),
        usual.usd_per_kwh.moved(now.usd_per_kwh),
        usual.years.moved(now.years),
        gpus_per_server=now.gpus_per_server,
    )


def _prices() -> dict[str, Value]:
    """Return the prices that hold, as a study names them: a price set, and the figures that differ from it."""
    state, now = Prices.now(), cluster_catalogue()
    name = SET_BY_SPEED
    if state.choices():
        name = state.prices if state.prices in PRICE_SETS else now.based_on
    base = PRICE_SETS[name if name in PRICE_SETS else SET_BY_SPEED]
    values: dict[str, Value] = {"prices": base.based_on}
    for part in now.parts:
        listed = base.part(part.id)
        for field in ("price_usd", "power_w"):
            if getattr(part, field) != getattr(listed, field):
                values[f"prices.{part.id}.{field}"] = getattr(part, field)
    if base.port_gbps != now.port_gbps or base.switch_transceivers != now.switch_transceivers:
        raise InputError(
            "has prices of another port speed than its price set; a study cannot count with them",
            file="prices",
        )
    return values


def key_of(question: Question) -> str:
    """Return what an answer depends on, as a digest."""
    figures = [
        [one.key, one.name, one.vendor, repr((one.delay_ms, one.ports, one.port_usd, one.port_w))]
        for one in question.offers
    ]
    held = sorted((name, repr(value)) for name, value in question.fixed.items())
    return digest_of(
        [
            question.resolved.digest,
            question.resolved.title,
            figures,
            list(question.degrees),
            list(question.rivals),
            held,
            repr(question.assumed),
            question.by,
        ]
    )
