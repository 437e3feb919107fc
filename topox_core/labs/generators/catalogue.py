"""Every generator by name: a new one is a line here."""

from collections.abc import Mapping
from types import MappingProxyType

from topox_core.errors import look_up
from topox_core.labs.generators import fixed_circuits, four_jobs, one_port, rails, turns
from topox_core.labs.generators.generator import Generator
from topox_core.labs.lab import Source

GENERATORS: Mapping[str, Generator] = MappingProxyType(
    {
        one.name: one
        for one in (
            *one_port.GENERATORS,
            *fixed_circuits.GENERATORS,
            turns.GENERATOR,
            *rails.GENERATORS,
            four_jobs.GENERATOR,
        )
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
