"""Runs side by side: what was set differently, what came out differently, what is the same."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from topox_core.errors import InputError
from topox_core.library.rows import StoredRun

MAX = 20  # a table of more columns is read by nobody


@dataclass(frozen=True)
class ComparedValue:
    """One setting or measure of several runs, in their order; None where a run has none."""

    name: str
    values: tuple[Any, ...]

    @property
    def equal(self) -> bool:
        """Whether all runs have the same."""
        return all(value == self.values[0] for value in self.values)

    @property
    def ratios(self) -> tuple[float | None, ...]:
        """Each value as a multiple of the first run's; None where one is no number or the first is 0."""
        first = self.values[0]
        return tuple(
            value / first if _is_number(value) and _is_number(first) and first else None
            for value in self.values
        )


@dataclass(frozen=True)
class RunComparison:
    """Several runs and all that they were given and came to."""

    runs: tuple[StoredRun, ...]
    settings: tuple[ComparedValue, ...]
    outcome: tuple[ComparedValue, ...]

    @property
    def different_settings(self) -> tuple[ComparedValue, ...]:
        """What was set differently."""
        return tuple(one for one in self.settings if not one.equal)

    @property
    def different_outcome(self) -> tuple[ComparedValue, ...]:
        """What came out differently."""
        return tuple(one for one in self.outcome if not one.equal)

    @property
    def equal_settings(self) -> dict[str, Any]:
        """What all runs were given alike."""
        return {one.name: one.values[0] for one in self.settings if one.equal}

    @property
    def equal_outcome(self) -> dict[str, Any]:
        """What all runs came to alike."""
        return {one.name: one.values[0] for one in self.outcome if one.equal}


def compare_runs(runs: Sequence[StoredRun]) -> RunComparison:
    """Compare two or more runs.

    Raises
    ------
    InputError
        If there are fewer than two or more than 20.
    """
    if not 2 <= len(runs) <= MAX:
        raise InputError(f"must be 2 to {MAX} (got {len(runs)})", file="runs to compare")
    settings = compared([{**_given(one), **flat(one.record.settings)} for one in runs])
    # The cluster's digest says no more than the keys that differ.
    if any(one.name.startswith("cluster.") and not one.equal for one in settings):
        settings = tuple(one for one in settings if one.name != "cluster")
    return RunComparison(tuple(runs), settings, compared([_came_to(one) for one in runs]))


def _given(one: StoredRun) -> dict[str, Any]:
    record = one.record
    keys = ("kind", "subject", "graph", "cluster", "version")
    return {key: getattr(record, key) for key in keys if getattr(record, key)}


def _came_to(one: StoredRun) -> dict[str, Any]:
    record = one.record
    words = {"status": record.status, "stopped_by": record.stopped_by}
    last = {"message": record.message} if record.message else {}
    return {**words, **record.measures, **last}


def compared(records: Sequence[Mapping[str, Any]]) -> tuple[ComparedValue, ...]:
    """Return all that several mappings hold, by name, in the order in which the names first appear."""
    names = dict.fromkeys(name for record in records for name in record)
    return tuple(
        ComparedValue(name, tuple(record.get(name) for record in records)) for name in names
    )


def flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """Return settings with every object in them taken apart: ``subject.name``."""
    values: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{name}.")
        else:
            values[prefix + name] = value
    return values


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
