"""Optical switches on offer: delay, ports, price and watts of each, as ranges with where they come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

from topox_core.economics.price_sets import MAX_PORTS, MAX_USD, MAX_W, Catalogue
from topox_core.errors import InputError, errors_in_file, look_up, printable, refuse_if, shown
from topox_core.fabrics.comparison.compare import MAX_DELAY_MS
from topox_core.io.content import FileFormat, entries_of, named, read_object, record_of
from topox_core.io.limits import OFFERS as LIMITS, is_number
from topox_core.schema.fields import PRINTABLE, fields_of, setting
from topox_core.schema.records import from_values, wrong_fields
from topox_core.training.machine import Machine, figures

LEVELS = ("low", "usual", "high")
PROVENANCES = ("published", "vendor", "assumed")
# What each figure is called, its unit and its most.
FIGURES = {
    "delay_ms": ("Reconfiguration delay", "ms", MAX_DELAY_MS),
    "ports": ("Ports of a switch", "", float(MAX_PORTS)),
    "port_usd": ("Price of a port", "$", MAX_USD),
    "port_w": ("Power of a port", "W", MAX_W),
}
MAX_SOURCE = 300

_End = Annotated[float, setting(ge=0)]
_Name = Annotated[str, setting(min_length=1, max_length=60, without=PRINTABLE)]


@dataclass(frozen=True)
class Estimate:
    """One uncertain number; whoever holds it checks it.

    Attributes
    ----------
    low, usual, high
        In this order; equal where nothing is uncertain.
    provenance
        Of the usual value: ``published`` (printed in a paper), ``vendor`` or ``assumed``.
    source
        Who says so, and what the ends are, in words.
    """

    low: _End
    usual: _End
    high: _End
    provenance: Annotated[str, setting(choices=PROVENANCES, key="from")] = "assumed"
    source: Annotated[str, setting(max_length=MAX_SOURCE, without=PRINTABLE)] = ""

    def at(self, level: str) -> float:
        """Return one of the three values."""
        return float(getattr(self, level))

    @property
    def values(self) -> tuple[float, float, float]:
        """All three, in their order."""
        return self.low, self.usual, self.high

    def moved(self, usual: float) -> Estimate:
        """Return the estimate with another usual value; an end that it passes moves with it."""
        return replace(self, low=min(self.low, usual), usual=usual, high=max(self.high, usual))

    def by_hand(self, changed: Estimate) -> Estimate:
        """Return other values of it, which then are assumed: who typed them in gave no source."""
        source = self.source
        if not source.startswith("Set by hand"):
            was = f"Set by hand; was {self.low:g}, {self.usual:g}, {self.high:g}"
            source = f"{was} ({source})"[:MAX_SOURCE] if source else was
        return replace(changed, provenance="assumed", source=source)


@dataclass(frozen=True)
class SwitchProduct:
    """One kind of optical switch that can be bought.

    Attributes
    ----------
    key
        Short and unique; files and links name it.
    delay_ms, ports, port_usd, port_w
        Reconfiguration delay, ports of a switch, price and power of one port.

    Raises
    ------
    InputError
        If a figure cannot be; offer and field are named.
    """

    key: Annotated[
        str, setting(max_length=60, pattern="^[A-Za-z0-9_-]+$", like="letters, digits, - and _")
    ]
    name: _Name
    vendor: Annotated[str, setting(max_length=60, without=PRINTABLE)]
    delay_ms: Estimate
    ports: Estimate
    port_usd: Estimate
    port_w: Estimate

    def __post_init__(self) -> None:
        for field, problem in chain(wrong_fields(self), *map(self._wrong, FIGURES)):
            raise InputError(problem, item=f"offer {printable(str(self.key))}", field=field)

    def _wrong(self, field: str) -> Iterator[tuple[str, str]]:
        """Yield (field, problem) for whatever is wrong with a figure."""
        figure, most = self.figure(field), FIGURES[field][2]
        yield from ((f"{field}.{part}", problem) for part, problem in wrong_fields(figure))
        for level in ("usual", "low", "high"):
            value = figure.at(level)
            if field == "ports" and not (value.is_integer() and 1 <= value <= most):
                whole = f"must be a whole number from 1 to {most:,.0f} (got {shown(value)})"
                yield f"{field}.{level}", whole
            elif value > most:
                yield f"{field}.{level}", f"must be at most {most:,.0f} (got {shown(value)})"
        if not figure.low <= figure.usual <= figure.high:
            words = f"{figure.low:g}, {figure.usual:g}, {figure.high:g}"
            yield field, f"must rise from low to usual to high (got {words})"

    @property
    def title(self) -> str:
        """Its name with its vendor."""
        return f"{self.name} ({self.vendor})" if self.vendor else self.name

    def figure(self, field: str) -> Estimate:
        """Return one of its figures."""
        figure: Estimate = getattr(self, field)
        return figure

    def changed(self, field: str, figure: Estimate) -> SwitchProduct:
        """Return the product with other values of a figure, set by hand; raises InputError."""
        own = self.figure(field)
        if own.values == figure.values:
            return self
        return replace(self, **{field: own.by_hand(figure)})  # type: ignore[arg-type]


# The kinds of Photonic Rails' table 3. A delay ends where somebody measured it, else at half and twice; ports are
# priced as a Polatis port, the robotic one as the two patch-panel ports that it stands for.
_SHIPPED = Path(__file__).parent / "published.offers.json"
OFFERS = tuple(
    from_values(SwitchProduct, one, _SHIPPED.name)
    for one in json.loads(_SHIPPED.read_text(encoding="utf-8"))["offers"]
)


def offer_of(offers: Iterable[SwitchProduct], key: str) -> SwitchProduct:
    """Return an offer by its key; raises InputError, which names the nearest one."""
    return look_up(key, {one.key: one for one in offers}, "offer", field="offers")


def published_for(offers: Sequence[SwitchProduct], usd: float) -> str:
    """Return for which of several switches of one price of a port it is published; empty of none, or of one alone."""
    having = [one for one in offers if one.port_usd.usual == usd]
    of = [one.vendor or one.name for one in having if one.port_usd.provenance == "published"]
    return of[0] if of and len(having) > 1 else ""


def price_and_source(offers: Sequence[SwitchProduct], usd: float, status: str) -> str:
    """Return the price of a port and who printed it: $520 (published for Polatis); else its status: $600 (assumed)."""
    of = published_for(offers, usd)
    return f"${usd:,.6g} ({f'published for {of}' if of else status})"


def with_edit(
    offers: Sequence[SwitchProduct], key: str, field: str, level: str, value: float
) -> tuple[SwitchProduct, ...]:
    """Return the offers with one value of one of them replaced; a usual one moves an end that it passes.

    Raises
    ------
    InputError
        If the value cannot be; the offer is named.
    """
    own = offer_of(offers, key).figure(field)
    usual = level == "usual" and is_number(value)
    figure = own.moved(value) if usual else replace(own, **{level: value})  # type: ignore[arg-type]
    return tuple(one.changed(field, figure) if one.key == key else one for one in offers)


def edits_between(base: Sequence[SwitchProduct], now: Sequence[SwitchProduct]) -> str:
    """Return changed figures for a link: ``piezo.port_usd:260:520:1040``; ``""`` for none."""
    known = {one.key: one for one in base}
    figures = ((one.key, field, one.figure(field).values) for one in now for field in FIGURES)
    return ",".join(
        f"{key}.{field}:" + ":".join(f"{value:.9g}" for value in values)
        for key, field, values in figures
        if values != known[key].figure(field).values
    )


def with_edits(base: Sequence[SwitchProduct], words: str) -> tuple[SwitchProduct, ...]:
    """Return offers with the edits that :func:`edits_between` returned.

    Raises
    ------
    InputError
        If they cannot be read, or name what cannot be.
    """
    offers = {one.key: one for one in base}
    for one in filter(None, words.split(",")):
        place, _, numbers = one.partition(":")
        key, _, field = place.partition(".")
        try:
            low, usual, high = (float(number) for number in numbers.split(":"))
            if field not in FIGURES:
                raise ValueError
        except ValueError:
            problem = f"must be offer.figure:low:usual:high, separated by commas (got {shown(one)})"
            raise InputError(problem, field="offers") from None
        offers[key] = offer_of(offers.values(), key).changed(field, Estimate(low, usual, high))
    return tuple(offers.values())


FORMAT, VERSION = "topox-offers", 1
_FORM = FileFormat(FORMAT, VERSION, ("offers",), LIMITS)


def load_offers(data: bytes, file: str) -> tuple[SwitchProduct, ...]:
    """Read offers, gzipped or not; what one does not say is that of the published one of its key.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, offer and field.
    """
    file = printable(file, 200) if file else "offers"
    entries = entries_of(read_object(data, file, _FORM), "offers", "offers", _FORM, file)
    refuse_if((not entries, "is empty"), file=file, field="offers")
    offers: dict[str, SwitchProduct] = {}
    with errors_in_file(file):
        for number, entry in enumerate(entries, 1):
            item = named(entry, "key", "offer", number)
            offer = from_values(SwitchProduct, _with_published(entry, item), file, item)
            refuse_if((offer.key in offers, "is in the file twice"), item=item)
            offers[offer.key] = offer
    return tuple(offers.values())


def dump_offers(offers: Sequence[SwitchProduct]) -> bytes:
    """Write offers whole; reading them back gives equal ones."""
    return _FORM.written({"offers": [_record(one) for one in offers]})


def _record(one: SwitchProduct) -> dict[str, Any]:
    said = fields_of(Estimate).values()
    figures = {
        name: {of.key: getattr(one.figure(name), of.name) for of in said} for name in FIGURES
    }
    return record_of(one, "key name vendor") | figures


def _with_published(entry: Any, item: str) -> Any:
    """Return an offer of a file with what it does not say: figures as objects, the rest of the published one."""
    if not isinstance(entry, Mapping):
        return entry
    base = next((_record(one) for one in OFFERS if one.key == entry.get("key")), {"vendor": ""})
    values = {**base, **entry}
    for field in FIGURES.keys() & entry.keys():
        given = values[field]
        if is_number(given):
            given = {"usual": given}
        refuse_if(
            (
                not isinstance(given, Mapping),
                f"must be a number, or an object with low, usual and high (got {shown(given)})",
            ),
            item=item,
            field=field,
        )
        ends = {level: given["usual"] for level in LEVELS if "usual" in given}
        values[field] = {**ends, **given}
    return values


def sources_of(
    machine: Machine | None = None,
    prices: Catalogue | None = None,
    offers: Iterable[SwitchProduct] = (),
) -> dict[str, str]:
    """Return where the figures of a machine, of parts and of switches on offer are from, a word each."""
    found: dict[str, str] = {}
    if machine is not None:
        found |= {f"{machine.name}.{one.field}": one.status for one in figures(machine)}
    for part in () if prices is None else prices.parts:
        found |= {f"{part.id}.price_usd": part.price_from, f"{part.id}.power_w": part.power_from}
    return found | {
        f"{offer.key}.{field}": offer.figure(field).provenance
        for offer in offers
        for field in FIGURES
    }
