"""Offers from and to files: ``*.offers.json``, format ``topox-offers`` version 1 (docs/buying.md)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from topox_core.errors import InputError, errors_in_file, printable, shown, unknown
from topox_core.io.json import FileFormat, count_of, named, read_object
from topox_core.io.limits import OFFERS as LIMITS
from topox_core.io.ranges import is_number
from topox_core.studies.offers import FIGURES, LEVELS, MOST_OFFERS, OFFERS, Figure, Offer

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
            if len(offers) == MOST_OFFERS:
                raise InputError(f"has more than {MOST_OFFERS} offers", field="offers")
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
