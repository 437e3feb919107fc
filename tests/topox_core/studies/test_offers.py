"""Offers: the seven as published, a reader's changes, files and links of them."""

import json
from typing import Any

import pytest

from topox_core.errors import InputError
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.studies.offers import (
    FIGURES,
    OFFERS,
    dump_offers,
    edits_between,
    load_offers,
    offer_of,
    with_edit,
    with_edits,
)


def test_the_seven_have_the_published_delays_and_ports_and_say_where_figures_come_from() -> None:
    for one, published in zip(OFFERS, TECHNOLOGIES, strict=True):
        assert (one.key, one.delay_ms.usual) == (published.key, published.reconfiguration_ms)
        assert one.ports.usual == published.radix
        assert all(figure.source for figure in map(one.figure, FIGURES))
    prices = {
        one.key: one.port_usd.usual for one in OFFERS if one.port_usd.provenance == "published"
    }
    assert prices == {"piezo": 520.0, "robotic": 2 * 100.0 + 25.0}  # no paper prints another one's


def test_a_usual_value_beyond_its_range_moves_the_end_and_becomes_assumed() -> None:
    changed = offer_of(with_edit(OFFERS, "piezo", "port_usd", "usual", 2_000.0), "piezo").port_usd
    found = (changed.low, changed.usual, changed.high, changed.provenance)
    assert found == (260.0, 2_000.0, 2_000.0, "assumed")
    assert changed.source.startswith("Set by hand; was 260, 520, 1040")


@pytest.mark.parametrize(
    ("field", "level", "value", "line"),
    [
        ("port_usd", "low", 600.0, "offer piezo, field port_usd: must rise from low to usual to"),
        (
            "delay_ms",
            "usual",
            -1.0,
            "offer piezo, field delay_ms.usual: must be at least 0 (got -1)",
        ),
        (
            "delay_ms",
            "usual",
            float("nan"),
            "offer piezo, field delay_ms.usual: must be a finite number",
        ),
        ("ports", "usual", 0.5, "offer piezo, field ports.usual: must be a whole number from 1"),
    ],
)
def test_a_value_that_cannot_be_is_one_line(
    field: str, level: str, value: float, line: str
) -> None:
    with pytest.raises(InputError) as error:
        with_edit(OFFERS, "piezo", field, level, value)
    assert str(error.value).startswith(line)


def test_files_and_links_carry_what_was_changed_and_links_nothing_else() -> None:
    changed = with_edit(OFFERS, "mems", "delay_ms", "high", 40.0)
    assert load_offers(dump_offers(changed), "a.offers.json") == changed
    words = edits_between(OFFERS, changed)
    assert words == "mems.delay_ms:7.5:15:40"
    assert edits_between(changed, with_edits(OFFERS, words)) == ""
    for wrong in ("piezo", "piezo.speed:1:2:3", "piezo.ports:1:2", "x.ports:1:1:1"):
        with pytest.raises(InputError):
            with_edits(OFFERS, wrong)


def _file(*offers: dict[str, Any]) -> bytes:
    return json.dumps({"format": "topox-offers", "version": 1, "offers": list(offers)}).encode()


def test_an_offer_of_a_file_takes_from_the_published_one_what_it_does_not_say() -> None:
    (one,) = load_offers(_file({"key": "mems", "port_usd": 300}), "own.json")
    assert (one.name, one.vendor, one.delay_ms) == ("3D MEMS", "Calient", OFFERS[3].delay_ms)
    assert (one.port_usd.low, one.port_usd.high, one.port_usd.provenance) == (300, 300, "assumed")


NEW = {"key": "new", "name": "New", "delay_ms": 1, "ports": 64, "port_usd": 10, "port_w": 1}


@pytest.mark.parametrize(
    ("offers", "line"),
    [
        ([], "own.json, field offers: is empty"),
        ([3], "own.json, offer 1: must be an object in braces (got 3)"),
        ([{"key": "new", "name": "New"}], "own.json, offer new, field delay_ms: is missing"),
        ([{"key": "new"}], "own.json, offer new, field name: is missing"),
        (
            [NEW | {"prize": 1}],
            "own.json, offer new, field prize: unknown key (expected one of key",
        ),
        ([NEW, NEW], "own.json, offer new: is in the file twice"),
        ([NEW | {"ports": 0}], "own.json, offer new, field ports.usual: must be a whole number"),
        ([NEW | {"port_w": {"low": 1}}], "own.json, offer new, field port_w.usual: is missing"),
        (
            [NEW | {"port_w": {"usual": 1, "from": "me"}}],
            "own.json, offer new, field port_w.from: must be one of published, vendor, assumed",
        ),
        (
            [NEW | {"key": "a b"}],
            "own.json, offer a b, field key: must be letters, digits, - and _",
        ),
        (
            [NEW | {"delay_ms": True}],
            "own.json, offer new, field delay_ms: must be a number, or an",
        ),
    ],
)
def test_a_mistake_in_a_file_is_one_line(offers: list[Any], line: str) -> None:
    with pytest.raises(InputError) as error:
        load_offers(_file(*offers), "own.json")
    assert str(error.value).startswith(line)
