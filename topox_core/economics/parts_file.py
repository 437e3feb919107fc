"""Catalogues as files: ``*.parts.json``, ``topox-parts`` version 1; edits as words in a link."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from topox_core.economics.parts import PARTS, Catalogue, as_records
from topox_core.economics.price_sets import DEFAULT_SET, PRICE_SETS
from topox_core.errors import InputError, errors_in_file
from topox_core.io.errors import printable, shown, unknown
from topox_core.io.json import Location, file_body, read_record
from topox_core.io.ranges import check_one_of
from topox_core.io.record import record_of

FORMAT = "topox-parts"
VERSION = 1
_Number = Annotated[float, Field(allow_inf_nan=False)]
_KEYS = ("name", "based_on", "port_gbps", "switch_transceivers", "parts")
_PART_KEYS = ("id", "name", "price_usd", "power_w", "price_from", "power_from", "source", "ports")


class _PartRecord(BaseModel):
    """One part as the file has it: types only; :class:`Part` knows the ranges."""

    model_config = ConfigDict(extra="forbid", strict=True)

    id: str
    name: str | None = None
    price_usd: _Number | None = None
    power_w: _Number | None = None
    price_from: str | None = None
    power_from: str | None = None
    source: str | None = None
    ports: int | None = None


class _FileRecord(BaseModel):
    """A catalogue as the file has it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    parts: list[_PartRecord]
    name: str = ""
    based_on: str = DEFAULT_SET
    port_gbps: _Number | None = None
    switch_transceivers: bool | None = None


def load_parts(data: bytes, file: str) -> Catalogue:
    """Read a catalogue, gzipped or not; what it does not name is that of ``based_on``.

    Raises
    ------
    InputError
        If the file cannot be used, names an unknown part, or has a negative figure; one line names
        file, part and field.
    """
    file = printable(file, 200) if file else "parts"
    values = _validated(file_body(data, file, FORMAT, VERSION), file)
    check_one_of(values.based_on, PRICE_SETS, file=file, field="based_on")
    base = PRICE_SETS[values.based_on]
    figures: dict[str, dict[str, Any]] = {}
    for number, part in enumerate(values.parts, start=1):
        if part.id not in PARTS:
            raise InputError(
                unknown(part.id, PARTS, "part"), file=file, item=f"part {number}", field="id"
            )
        if part.id in figures:
            raise InputError("is in the file twice", file=file, item=f"part {part.id}")
        figures[part.id] = {
            key: value for key, value in part.model_dump(exclude_none=True).items() if key != "id"
        }
    changes: dict[str, Any] = {"name": values.name or base.name}
    changes |= {
        key: value
        for key in ("port_gbps", "switch_transceivers")
        if (value := getattr(values, key)) is not None
    }
    with errors_in_file(file):
        return replace(base.changed(figures), **changes)


def _validated(body: dict[str, Any], file: str) -> _FileRecord:
    def place(at: Location) -> tuple[str, str, tuple[str, ...]]:
        if len(at) < 2 or at[0] != "parts":
            return "", printable(str(at[0])), _KEYS
        field = printable(str(at[2])) if len(at) > 2 else ""
        return _named(body, at[1]), field, _PART_KEYS if len(at) > 2 else _KEYS

    return read_record(_FileRecord, body, file, place)


def _named(body: dict[str, Any], number: object) -> str:
    """Return a part's id if it has a readable one, else its place in the list."""
    parts = body.get("parts")
    if isinstance(parts, list) and isinstance(number, int) and isinstance(parts[number], dict):
        name = parts[number].get("id")
        if isinstance(name, str) and name:
            return f"part {printable(name)}"
    return f"part {int(number) + 1}" if isinstance(number, int) else ""


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
    words = []
    for before, after in zip(base.parts, now.parts, strict=True):
        if (before.price_usd, before.power_w) != (after.price_usd, after.power_w):
            words.append(f"{after.id}:{after.price_usd:.9g}:{after.power_w:.9g}")
    return ",".join(words)


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
        # A link rounds to nine digits: what only differs by that is not an edit.
        part = next((part for part in base.parts if part.id == name), None)
        same = part is not None and (f"{part.price_usd:.9g}", f"{part.power_w:.9g}") == (
            f"{price:.9g}",
            f"{power:.9g}",
        )
        figures[name] = (
            {}
            if same
            else {
                "price_usd": part.price_usd
                if part and f"{part.price_usd:.9g}" == f"{price:.9g}"
                else price,
                "power_w": part.power_w
                if part and f"{part.power_w:.9g}" == f"{power:.9g}"
                else power,
            }
        )
    return base.changed(figures)
