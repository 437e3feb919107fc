"""Optical switches on offer: delay, ports, price and watts of each, as ranges with where they come from."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from topox_core.economics.parts import MAX_PORTS, MAX_USD, MAX_W
from topox_core.errors import InputError, errors_in_file, printable, shown, unknown
from topox_core.fabrics.compare import MAX_DELAY_MS
from topox_core.io.json import FileFormat, count_of, named, read_object
from topox_core.io.limits import OFFERS as LIMITS
from topox_core.io.ranges import check_text, is_number, is_whole
from topox_core.rails.technologies import TECHNOLOGIES

LEVELS = ("low", "usual", "high")
PROVENANCES = ("published", "vendor", "assumed")
# What each figure is called, its unit and its most.
FIGURES = {
    "delay_ms": ("Reconfiguration delay", "ms", MAX_DELAY_MS),
    "ports": ("Ports of a switch", "", float(MAX_PORTS)),
    "port_usd": ("Price of a port", "$", MAX_USD),
    "port_w": ("Power of a port", "W", MAX_W),
}
MAX_OFFERS = 40
MAX_NAME, MAX_SOURCE = 60, 300


@dataclass(frozen=True)
class Figure:
    """One uncertain number.

    Attributes
    ----------
    low, usual, high
        In this order; equal where nothing is uncertain.
    provenance
        Of the usual value: ``published`` (printed in a paper), ``vendor`` or ``assumed``.
    source
        Who says so, and what the ends are, in words.
    """

    low: float
    usual: float
    high: float
    provenance: str = "assumed"
    source: str = ""

    def at(self, level: str) -> float:
        """Return one of the three values."""
        return float(getattr(self, level))

    @property
    def certain(self) -> bool:
        """Whether both ends are the usual value."""
        return self.low == self.usual == self.high


@dataclass(frozen=True)
class Offer:
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

    key: str
    name: str
    vendor: str
    delay_ms: Figure
    ports: Figure
    port_usd: Figure
    port_w: Figure

    def __post_init__(self) -> None:
        check_text(self.key, MAX_NAME, 1, item="offer", field="key")
        if not self.key.replace("-", "").replace("_", "").isalnum():
            problem = f"must be letters, digits, - and _ (got {shown(self.key)})"
            raise InputError(problem, item="offer", field="key")
        for field in ("name", "vendor"):
            least = 1 if field == "name" else 0
            check_text(getattr(self, field), MAX_NAME, least, item=self.item, field=field)
        for field, (_, _, most) in FIGURES.items():
            self._check(field, getattr(self, field), most)

    def _check(self, field: str, figure: Figure, most: float) -> None:
        for level in ("usual", "low", "high"):
            value = getattr(figure, level)
            place = f"{field}.{level}"
            if field == "ports":
                whole = isinstance(value, float) and value.is_integer()
                if not is_whole(int(value) if whole else value, 1, most):
                    problem = f"must be a whole number from 1 to {most:,.0f} (got {shown(value)})"
                    raise InputError(problem, item=self.item, field=place)
            elif not is_number(value, 0.0, most):
                problem = f"must be a number from 0 to {most:,.0f} (got {shown(value)})"
                raise InputError(problem, item=self.item, field=place)
        if not figure.low <= figure.usual <= figure.high:
            words = f"{figure.low:g}, {figure.usual:g}, {figure.high:g}"
            problem = f"must rise from low to usual to high (got {words})"
            raise InputError(problem, item=self.item, field=field)
        if figure.provenance not in PROVENANCES:
            problem = f"must be one of {', '.join(PROVENANCES)} (got {shown(figure.provenance)})"
            raise InputError(problem, item=self.item, field=f"{field}.from")
        check_text(figure.source, MAX_SOURCE, item=self.item, field=f"{field}.source")

    @property
    def item(self) -> str:
        """What errors call it."""
        return f"offer {printable(self.key)}"

    @property
    def title(self) -> str:
        """Its name with its vendor."""
        return f"{self.name} ({self.vendor})" if self.vendor else self.name

    def figure(self, field: str) -> Figure:
        """Return one of its figures."""
        figure: Figure = getattr(self, field)
        return figure

    def with_value(self, field: str, level: str, value: float) -> Offer:
        """Return the offer with one value replaced, which then is assumed: who typed it in gave no source.

        A usual value beyond an end of its range moves that end with it.

        Raises
        ------
        InputError
            If the value cannot be; the offer is named.
        """
        figure = self.figure(field)
        if value == figure.at(level):
            return self
        changes: dict[str, float] = {level: value}
        if level == "usual" and is_number(value):
            changes |= {"low": min(figure.low, value), "high": max(figure.high, value)}
        source = figure.source
        if not source.startswith("Set by hand"):
            was = f"Set by hand; was {figure.low:g}, {figure.usual:g}, {figure.high:g}"
            source = f"{was} ({source})"[:MAX_SOURCE] if source else was
        new = replace(figure, **changes, provenance="assumed", source=source)
        return replace(self, **{field: new})  # type: ignore[arg-type]


_TABLE_3 = "Photonic Rails in ML Datacenters (arXiv 2507.08119), Table 3"
_HALF_TWICE = "low and high: half and twice, assumed"
_POLATIS_USD = "TopoOpt's price of a Polatis port, reprinted in MixNet (SIGCOMM 2025) Table 4"
_PANEL_USD = (
    "two patch-panel ports at 100 $ (MixNet Table 4) and a 1 x 2 switch at 25 $ (TopoOpt, recalled), as the fixed "
    "circuits beside it are counted; low: one panel port; high: twice, assumed"
)
_POLATIS_W = "75 W over 192 ports, Polatis 6000N data sheet; " + _HALF_TWICE
# Delays whose range somebody measured; the others are taken as half and twice.
_MEASURED_MS = {
    "piezo": (
        25.0,
        47.0,
        f"{_TABLE_3}; high: MixNet (SIGCOMM 2025) measured 41 to 47 ms on a Polatis switch",
    )
}


def _published() -> tuple[Offer, ...]:
    offers = []
    for one in TECHNOLOGIES:
        delay, radix = one.reconfiguration_ms, float(one.radix)
        low, high, source = _MEASURED_MS.get(
            one.key, (delay / 2, delay * 2, f"{_TABLE_3}; {_HALF_TWICE}")
        )
        price = Figure(
            260.0, 520.0, 1_040.0, "assumed", f"as a Polatis port ({_POLATIS_USD}); {_HALF_TWICE}"
        )
        power = Figure(0.2, 0.4, 0.8, "assumed", f"about a Polatis port's; {_HALF_TWICE}")
        if one.key == "piezo":
            price = replace(price, provenance="published", source=f"{_POLATIS_USD}; {_HALF_TWICE}")
            watts = 75.0 / 192.0
            power = Figure(watts / 2, watts, watts * 2, "vendor", _POLATIS_W)
        elif one.key == "robotic":
            price = Figure(100.0, 225.0, 450.0, "published", _PANEL_USD)
            power = Figure(
                0.0, 0.0, 0.1, "assumed", "passive; what its robot draws is the high value"
            )
        offers.append(
            Offer(
                one.key,
                one.name,
                one.vendor,
                Figure(low, delay, high, "published", source),
                Figure(radix, radix, radix, "published", _TABLE_3),
                price,
                power,
            )
        )
    return tuple(offers)


OFFERS = _published()


def offer_of(offers: Iterable[Offer], key: str) -> Offer:
    """Return an offer by its key; raises InputError, which names the nearest one."""
    known = {one.key: one for one in offers}
    if key not in known:
        raise InputError(unknown(key, known, "offer"), field="offers")
    return known[key]


def with_edit(
    offers: Sequence[Offer], key: str, field: str, level: str, value: float
) -> tuple[Offer, ...]:
    """Return the offers with one value of one of them replaced; raises InputError."""
    return tuple(one.with_value(field, level, value) if one.key == key else one for one in offers)


def edits_between(base: Sequence[Offer], now: Sequence[Offer]) -> str:
    """Return changed figures for a link: ``piezo.port_usd:260:520:1040``; ``""`` for none."""
    known = {one.key: one for one in base}
    words = []
    for one in now:
        for field in FIGURES:
            figure = one.figure(field)
            values = [figure.at(level) for level in LEVELS]
            if values != [known[one.key].figure(field).at(level) for level in LEVELS]:
                words.append(f"{one.key}.{field}:" + ":".join(f"{v:.9g}" for v in values))
    return ",".join(words)


def with_edits(base: Sequence[Offer], words: str) -> tuple[Offer, ...]:
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
        offer = offer_of(offers.values(), key)
        figure = offer.figure(field)
        if (low, usual, high) == (figure.low, figure.usual, figure.high):
            continue
        was = f"Set by hand; was {figure.low:g}, {figure.usual:g}, {figure.high:g}"
        source = f"{was} ({figure.source})"[:MAX_SOURCE] if figure.source else was
        offers[key] = replace(offer, **{field: Figure(low, usual, high, "assumed", source)})  # type: ignore[arg-type]
    return tuple(offers.values())


FORMAT, VERSION = "topox-offers", 1
_FORM = FileFormat(FORMAT, VERSION, ("offers",), LIMITS)
_TEXTS = ("key", "name", "vendor")
_OF_FIGURE = (*LEVELS, "from", "source")


def load_offers(data: bytes, file: str) -> tuple[Offer, ...]:
    """Read offers, gzipped or not; what one does not say is that of the published one of its key.

    Raises
    ------
    InputError
        If the file cannot be used; one line names file, offer and field.
    """
    file = printable(file, 200) if file else "offers"
    offers: dict[str, Offer] = {}

    def take(number: int, entry: Any) -> None:
        item = named(entry, "key", "offer", number)
        with errors_in_file(file):
            offer = _offer(entry, item)
            if offer.key in offers:
                raise InputError("is in the file twice", item=item)
            if len(offers) == MAX_OFFERS:
                raise InputError(f"has more than {MAX_OFFERS} offers", field="offers")
        offers[offer.key] = offer

    body = read_object(data, file, _FORM, {"offers": take})
    if not count_of(body, "offers", "offers", file):
        raise InputError("is empty", file=file, field="offers")
    return tuple(offers.values())


def dump_offers(offers: Sequence[Offer]) -> bytes:
    """Write offers whole; reading them back gives equal ones."""
    record = {"format": FORMAT, "version": VERSION, "offers": [_record(one) for one in offers]}
    return (json.dumps(record, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _record(one: Offer) -> dict[str, Any]:
    record: dict[str, Any] = {name: getattr(one, name) for name in _TEXTS}
    for field in FIGURES:
        figure = one.figure(field)
        values = {level: figure.at(level) for level in LEVELS}
        record[field] = {**values, "from": figure.provenance, "source": figure.source}
    return record


def _offer(entry: Any, item: str) -> Offer:
    if not isinstance(entry, dict):
        raise InputError(f"must be an object in braces (got {shown(entry)})", item=item)
    for name in entry:
        if name not in (*_TEXTS, *FIGURES):
            problem = unknown(name, (*_TEXTS, *FIGURES))
            raise InputError(problem, item=item, field=printable(str(name)))
    key = entry.get("key")
    base = next((one for one in OFFERS if one.key == key), None)
    texts = {}
    for name in _TEXTS:
        value = entry.get(name, "" if base is None else getattr(base, name))
        if not isinstance(value, str):
            raise InputError(f"must be text (got {shown(value)})", item=item, field=name)
        texts[name] = value
    figures = {}
    for field in FIGURES:
        if field in entry:
            figures[field] = _figure(entry[field], item, field)
        elif base is not None:
            figures[field] = base.figure(field)
        else:
            raise InputError("is missing", item=item, field=field)
    return Offer(**texts, **figures)  # type: ignore[arg-type]


def _figure(given: Any, item: str, field: str) -> Figure:
    """Return a figure of its record: an object, or one number that is certain."""
    if is_number(given):
        return Figure(float(given), float(given), float(given))
    if not isinstance(given, dict):
        problem = f"must be a number, or an object with low, usual and high (got {shown(given)})"
        raise InputError(problem, item=item, field=field)
    for name in given:
        if name not in _OF_FIGURE:
            place = f"{field}.{printable(str(name))}"
            raise InputError(unknown(name, _OF_FIGURE), item=item, field=place)
    if "usual" not in given:
        raise InputError("is missing", item=item, field=f"{field}.usual")
    ends: dict[str, float] = {}
    for level in LEVELS:
        value: Any = given.get(level, given["usual"])
        if not is_number(value):
            problem = f"must be a number of at least 0 (got {shown(value)})"
            raise InputError(problem, item=item, field=f"{field}.{level}")
        ends[level] = float(value)
    return Figure(**ends, provenance=given.get("from", "assumed"), source=given.get("source", ""))
