"""Every generator by name: a new one is a file and a line here."""

from collections.abc import Mapping
from types import MappingProxyType

from topox_core.errors import look_up
from topox_core.labs.generators import (
    board,
    fan_out,
    four_jobs,
    mix,
    pairs,
    patience,
    price,
    turns,
    windows,
)
from topox_core.labs.generators.generator import Generator
from topox_core.labs.lab import Source

GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {
        one.GENERATOR.name: one.GENERATOR
        for one in (board, patience, fan_out, pairs, mix, turns, windows, four_jobs, price)
    }
)


def generator(name: str) -> Generator:
    """Return a generator.

    Raises
    ------
    InputError
        If there is none of that name; the nearest or all of them are named.
    """
    return look_up(name, GENERATORS, "generator", field="generator")


def drawn_by(source: Source | None) -> Generator | None:
    """Return the generator of an instance; None where there is no instance, or one from files."""
    return generator(source.generator) if source is not None and source.generator else None
