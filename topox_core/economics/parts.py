"""The catalogue: the parts of networks, their prices and watts, and the source of each figure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

from topox_core.errors import InputError, printable, shown, unknown
from topox_core.schema.fields import PRINTABLE, setting
from topox_core.schema.records import check_fields, wrong_fields

PROVENANCES = ("published", "vendor list", "assumed")
MAX_USD, MAX_W = 1e9, 1e9
MAX_PORTS = 100_000
MAX_TEXT = 300

# Every part a bill may name, with its unit, in the order of every table.
PARTS: dict[str, str] = {
    "transceiver": "each",
    "packet_switch": "whole switch",
    "ocs_port": "port",
    "patch_panel_port": "port",
    "one_by_two_switch": "each",
    "nic": "each",
    "fibre_m": "metre",
}

_Words = Annotated[str, setting(max_length=MAX_TEXT, without=PRINTABLE)]
_Provenance = Annotated[str, setting(choices=PROVENANCES)]


@dataclass(frozen=True)
class Part:
    """One part with its price and its power, each with the word of where it comes from.

    Parameters
    ----------
    id
        One of :data:`PARTS`.
    price_usd, power_w
        Of one unit. A packet switch is listed whole.
    ports
        Ports of a packet switch; 1 for everything else.
    price_from, power_from
        ``published`` (printed in a paper), ``vendor list``, or ``assumed``.
    source
        Who says so, in words.

    Raises
    ------
    InputError
        If the part is unknown, or a figure is negative, absurd or not a number.
    """

    id: Annotated[str, setting("Part", choices=tuple(PARTS))]
    name: _Words
    price_usd: Annotated[float, setting("Price", "$", ge=0, le=MAX_USD)]
    power_w: Annotated[float, setting("Power", "W", ge=0, le=MAX_W)]
    price_from: _Provenance = "assumed"
    power_from: _Provenance = "assumed"
    source: _Words = ""
    ports: Annotated[int, setting("Ports", ge=1, le=MAX_PORTS)] = 1

    def __post_init__(self) -> None:
        if self.id not in PARTS:
            raise InputError(
                unknown(self.id, PARTS, "part"), item=f"part {printable(str(self.id))}"
            )
        for field, problem in wrong_fields(self):
            raise self._wrong(problem, field)
        for field in ("price_usd", "power_w"):
            object.__setattr__(self, field, float(getattr(self, field)))
        if self.ports != 1 and self.id != "packet_switch":
            raise self._wrong(
                f"must be 1: only a packet switch has more (got {shown(self.ports)})", "ports"
            )
        if self.ports < 4 and self.id == "packet_switch":
            raise self._wrong(f"must be at least 4 (got {self.ports})", "ports")
        if self.ports % 2 and self.ports > 1:
            raise self._wrong(
                f"must be even: a Clos tier points half its ports up (got {self.ports})", "ports"
            )

    def _wrong(self, problem: str, field: str) -> InputError:
        return InputError(problem, item=f"part {self.id}", field=field)

    @property
    def port_usd(self) -> float:
        """Price of one port (of one unit, where a unit has one)."""
        return self.price_usd / self.ports

    @property
    def port_w(self) -> float:
        """Power of one port, in watts."""
        return self.power_w / self.ports


@dataclass(frozen=True)
class Catalogue:
    """All parts at one port speed.

    Parameters
    ----------
    parts
        One of each of :data:`PARTS`, in their order; servers are the same on every network and are in none.
    port_gbps
        Speed of the transceivers, NICs and packet ports, in Gbit/s.
    switch_transceivers
        Whether packet-switch ports need transceivers of their own (the authors' GB200 count has
        none there).

    Raises
    ------
    InputError
        If the speed is not a speed.
    """

    name: _Words
    parts: tuple[Part, ...]
    port_gbps: Annotated[float, setting("Port speed", "Gbit/s", gt=0, le=1e6)] = 400.0
    switch_transceivers: bool = True
    based_on: str = ""

    def __post_init__(self) -> None:
        check_fields(self)

    def part(self, name: str) -> Part:
        """Return a part by its id."""
        return next(part for part in self.parts if part.id == name)

    def changed(self, figures: Mapping[str, Mapping[str, Any]]) -> Catalogue:
        """Return the catalogue with some figures replaced: ``{"ocs_port": {"price_usd": 260}}``.

        What is changed becomes ``assumed``: a figure that was typed in has no source any more.

        Raises
        ------
        InputError
            If a part or a field is unknown, or a figure cannot be.
        """
        known = {field.name for field in fields(Part)} - {"id"}
        parts = {part.id: part for part in self.parts}
        for name, values in figures.items():
            if name not in parts:
                raise InputError(unknown(name, PARTS, "part"), item=f"part {printable(str(name))}")
            for key in values:
                if key not in known:
                    raise InputError(
                        unknown(key, sorted(known)), item=f"part {name}", field=printable(str(key))
                    )
            parts[name] = _retold(parts[name], values)
        return replace(self, parts=tuple(parts.values()))

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the canonical JSON bytes of everything that a bill depends on."""
        priced = [[p.id, p.price_usd, p.power_w, p.ports] for p in self.parts]
        return hashlib.sha256(
            json.dumps([priced, self.port_gbps, self.switch_transceivers]).encode()
        ).hexdigest()


def _retold(part: Part, values: Mapping[str, Any]) -> Part:
    """Return a part with new figures, those that differ marked as assumed."""
    new = replace(part, **values)
    words = []
    if new.price_usd != part.price_usd and "price_from" not in values:
        new, words = replace(new, price_from="assumed"), [f"{part.price_usd:,.6g} $"]
    if new.power_w != part.power_w and "power_from" not in values:
        new = replace(new, power_from="assumed")
        words.append(f"{part.power_w:,.6g} W")
    if words and "source" not in values:
        was = f"Set by hand; was {' and '.join(words)}"
        new = replace(new, source=f"{was} ({part.source})"[:MAX_TEXT] if part.source else was)
    return new


def as_records(catalogue: Catalogue) -> list[dict[str, Any]]:
    """Return the parts as plain records, ``ports`` only where there are several."""
    return [
        {key: one for key, one in asdict(part).items() if key != "ports" or part.ports != 1}
        for part in catalogue.parts
    ]
