"""Catalogues as files: ``*.parts.json``, ``topox-parts`` version 1; edits as words in a link."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from topox_core.economics.parts import Catalogue, Part, as_records
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS
from topox_core.errors import InputError, errors_in_file, printable, shown
from topox_core.io.json import FileFormat, count_of, named, read_object, record_of, without_header
from topox_core.io.limits import PARTS as LIMITS
from topox_core.io.ranges import check_one_of
from topox_core.schema.records import check_values

FORMAT = "topox-parts"
VERSION = 1
_KEYS = ("name", "based_on", "port_gbps", "switch_transceivers", "parts")
_FORM = FileFormat(FORMAT, VERSION, _KEYS, LIMITS)


def load_parts(data: bytes, file: str) -> Catalogue:
    """Read a catalogue, gzipped or not; what it does not name is that of ``based_on``.

    Raises
    ------
    InputError
        If the file cannot be used, names an unknown part, or has a negative figure; one line names
        file, part and field.
    """
    file = printable(file, 200) if file else "parts"
    figures: dict[str, dict[str, Any]] = {}

    def take(number: int, entry: Any) -> None:
        item = named(entry, "id", "part", number)
        check_values(Part, entry, file, item, must=("id",))
        part = entry["id"]
        if part in figures:
            raise InputError("is in the file twice", file=file, item=item)
        figures[part] = {key: value for key, value in entry.items() if key != "id"}

    body = read_object(data, file, _FORM, {"parts": take})
    count_of(body, "parts", "parts", file)
    values = without_header(body, "parts")
    base_name = values.pop("based_on", DEFAULT_SET)
    check_values(Catalogue, values, file, must=())
    check_one_of(base_name, PRICE_SETS, file=file, field="based_on")
    base = PRICE_SETS[base_name]
    changes = {"name": values.pop("name", "") or base.name, **values}
    with errors_in_file(file):
        return replace(base.changed(figures), **changes)


def dump_parts(catalogue: Catalogue) -> bytes:
    """Write a catalogue whole; reading it back gives an equal one."""
    record = {
        "format": FORMAT,
        "version": VERSION,
        "name": catalogue.name,
        "based_on": catalogue.based_on or DEFAULT_SET,
        **record_of(catalogue, "port_gbps switch_transceivers"),
        "parts": as_records(catalogue),
    }
    return (json.dumps(record, indent=1, ensure_ascii=False) + "\n").encode()


def edits_between(base: Catalogue, now: Catalogue) -> str:
    """Return changed prices and watts for a link: ``ocs_port:260:0.390625``; ``""`` for none."""
    return ",".join(
        f"{after.id}:{after.price_usd:.9g}:{after.power_w:.9g}"
        for before, after in zip(base.parts, now.parts, strict=True)
        if (before.price_usd, before.power_w) != (after.price_usd, after.power_w)
    )


def with_edits(base: Catalogue, words: str) -> Catalogue:
    """Return a catalogue with the edits that :func:`edits_between` returned.

    Raises
    ------
    InputError
        If they cannot be read, or name what cannot be.
    """
    figures: dict[str, dict[str, float]] = {}
    for one in filter(None, words.split(",")):
        pieces = one.split(":")
        try:
            name, price, power = pieces[0], float(pieces[1]), float(pieces[2])
        except (IndexError, ValueError):
            raise InputError(
                f"must be part:dollars:watts, separated by commas (got {shown(one)})",
                field="cost_parts",
            ) from None
        part = next((part for part in base.parts if part.id == name), None)
        # A link rounds to nine digits: what only differs by that is not an edit.
        figures[name] = {
            field: figure
            for field, figure in (("price_usd", price), ("power_w", power))
            if part is None or f"{getattr(part, field):.9g}" != f"{figure:.9g}"
        }
    return base.changed(figures)
