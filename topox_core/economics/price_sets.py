"""Parts of networks, their prices and watts with the source of each; the sets that ship; catalogues as files.

The files are ``topox-parts`` version 1.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from functools import cached_property
from typing import Annotated, Any

from topox_core.errors import InputError, check_known, errors_in_file, printable, refuse_if, shown
from topox_core.io.content import (
    FileFormat,
    entries_of,
    named,
    read_object,
    record_of,
    without_header,
)
from topox_core.io.limits import PARTS as LIMITS, check_one_of
from topox_core.model.quantities import Gbps
from topox_core.schema.fields import PRINTABLE, setting
from topox_core.schema.records import check_fields, check_values

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
        check_known(self.id, PARTS, "part", item=f"part {printable(str(self.id))}")
        check_fields(self, item=f"part {self.id}")
        switch, ports = self.id == "packet_switch", self.ports
        refuse_if(
            (
                ports != 1 and not switch,
                f"must be 1: only a packet switch has more (got {shown(ports)})",
            ),
            (ports < 4 and switch, f"must be at least 4 (got {ports})"),
            (
                ports % 2 and ports > 1,
                f"must be even: a Clos tier points half its ports up (got {ports})",
            ),
            item=f"part {self.id}",
            field="ports",
        )

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
    port_gbps: Gbps = 400.0
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
            check_known(name, PARTS, "part", item=f"part {printable(str(name))}")
            for key in values:
                check_known(key, sorted(known), item=f"part {name}", field=printable(str(key)))
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


# Dollars of a transceiver, a NIC and a packet-switch port by their speed in Gbit/s: MixNet Table 4
# and the calculator that came with it; TopoOpt (NSDI 2023) prints the same transceivers and ports
# from 25G to 100G. Below 40G: TopoOpt's table, recalled.
PRICED_GBPS = (10.0, 25.0, 40.0, 100.0, 200.0, 400.0, 800.0)
USD_BY_SPEED = {
    "transceiver": (20.0, 39.0, 39.0, 99.0, 239.0, 659.0, 1_399.0),
    "nic": (185.0, 185.0, 354.0, 659.0, 1_079.0, 1_499.0, 2_248.0),
    "packet_switch": (94.0, 144.0, 144.0, 187.0, 374.0, 1_090.0, 1_400.0),
}
SPEED_SOURCE = "MixNet Table 4 and its calculator (40G to 800G), TopoOpt's table (10G, 25G)"
_400G, _800G = PRICED_GBPS.index(400.0), PRICED_GBPS.index(800.0)
_MIXNET = "MixNet (SIGCOMM 2025) Table 4, 400G"
_FS = "price list of the shop FS, as cited with the Opus paper; not checked again"
_POLATIS = "port price as in TopoOpt, reprinted in MixNet Table 4; 75 W over 192 ports, Polatis 6000N data sheet"


def _transceiver(
    name: str, price_usd: float, power_w: float, source: str, price_from: str = "vendor list"
) -> Part:
    return Part("transceiver", name, price_usd, power_w, price_from, "vendor list", source)


_XDR4 = _transceiver("400G XDR4 transceiver", 219.0, 10.0, f"FS 110530; {_FS}")
_TH4 = Part(
    "packet_switch",
    "Packet switch, 64 x 400G",
    37_299.0,
    2_524.0,
    "vendor list",
    "vendor list",
    f"FS N9510-64D; {_FS}",
    64,
)
# The parts that no set that came with the Opus paper prices; MixNet's are used, and its watts are not
# printed.
_OTHERS = (
    Part(
        "ocs_port", "Optical switch port", 520.0, 75.0 / 192.0, "published", "vendor list", _POLATIS
    ),
    Part(
        "patch_panel_port",
        "Patch-panel port",
        100.0,
        0.0,
        "published",
        "assumed",
        f"{_MIXNET}; passive, moved by a robot",
    ),
    Part(
        "one_by_two_switch",
        "1 x 2 optical switch",
        25.0,
        0.0,
        "published",
        "assumed",
        "TopoOpt (NSDI 2023) cost table, recalled; latching, so it draws no power at rest",
    ),
    Part(
        "nic",
        "400G NIC",
        USD_BY_SPEED["nic"][_400G],
        25.0,
        "published",
        "assumed",
        f"{_MIXNET}; about 25 W is assumed",
    ),
    Part(
        "fibre_m",
        "Fibre",
        0.3,
        0.0,
        "published",
        "assumed",
        "cost calculator that came with MixNet; passive",
    ),
)

PRICE_SETS: dict[str, Catalogue] = {
    "opus-v1": Catalogue(
        "price list of the shop FS, 2025", (_XDR4, _TH4, *_OTHERS), based_on="opus-v1"
    ),
    "mixnet": Catalogue(
        "MixNet Table 4, 400G",
        (
            _transceiver(
                "400G transceiver",
                USD_BY_SPEED["transceiver"][_400G],
                10.0,
                f"{_MIXNET}; watts of FS 110530",
                "published",
            ),
            Part(
                "packet_switch",
                "Packet switch, 64 x 400G",
                64 * USD_BY_SPEED["packet_switch"][_400G],
                2_524.0,
                "published",
                "vendor list",
                f"64 ports at 1,090 $ each, {_MIXNET}; watts of FS N9510-64D",
                64,
            ),
            *_OTHERS,
        ),
        based_on="mixnet",
    ),
    "opus-v3-h200": Catalogue(
        "price list of the shop FS, H200",
        (_transceiver("400G transceiver", 879.0, 10.0, f"FS 229253; {_FS}"), _TH4, *_OTHERS),
        based_on="opus-v3-h200",
    ),
    "opus-v3-gb200": Catalogue(
        "price list of the shop FS, GB200",
        (
            _transceiver("800G transceiver", 879.0, 16.0, f"FS 229253; {_FS}"),
            Part(
                "packet_switch",
                "Quantum-X800 Q3400, 144 x 800G",
                149_939.0,
                7_000.0,
                "vendor list",
                "vendor list",
                "price list of Naddod and NVIDIA documentation, as cited with the Opus paper",
                144,
            ),
            *_OTHERS[:3],
            Part(
                "nic",
                "800G NIC",
                USD_BY_SPEED["nic"][_800G],
                45.0,
                "published",
                "assumed",
                "MixNet's calculator, 800G; watts assumed",
            ),
            _OTHERS[4],
        ),
        port_gbps=800.0,
        switch_transceivers=False,
        based_on="opus-v3-gb200",
    ),
}
# The set whose figures are those of the table by speed: it prices clusters of any port speed, so that
# one list prices everything where no other is chosen.
DEFAULT_SET = SET_BY_SPEED = "mixnet"
FILE_SET = "opus-v1"  # of a file that says none


def price_set(name: str) -> Catalogue:
    """Return a price set by its name.

    Raises
    ------
    InputError
        If there is none of that name.
    """
    check_one_of(name, PRICE_SETS, field="prices")
    return PRICE_SETS[name]


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
    body = read_object(data, file, _FORM)
    figures: dict[str, dict[str, Any]] = {}
    for number, entry in enumerate(entries_of(body, "parts", "parts", _FORM, file), 1):
        item = named(entry, "id", "part", number)
        check_values(Part, entry, file, item, must=("id",))
        part = entry["id"]
        refuse_if((part in figures, "is in the file twice"), file=file, item=item)
        figures[part] = {key: value for key, value in entry.items() if key != "id"}
    values = without_header(body, "parts")
    base_name = values.pop("based_on", FILE_SET)
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
        "based_on": catalogue.based_on or FILE_SET,
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
                field="cost.parts",
            ) from None
        part = next((part for part in base.parts if part.id == name), None)
        # A link rounds to nine digits: what only differs by that is not an edit.
        figures[name] = {
            field: figure
            for field, figure in (("price_usd", price), ("power_w", power))
            if part is None or f"{getattr(part, field):.9g}" != f"{figure:.9g}"
        }
    return base.changed(figures)
