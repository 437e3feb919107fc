"""How long windows are: lengths, shares above a delay, by the traffic that follows (Fig. 4)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from topox_core.errors import wrong_setting
from topox_core.model.transfer_graph import FloatArray
from topox_core.rails.iteration import Window
from topox_core.text.numbers import short

MIB = float(1 << 20)


MAX_CLASSES = 9  # of traffic, as a chart shows them; the rarest share the last


_EPS_MS = 1e-9


@dataclass(frozen=True)
class TrafficClass:
    """Windows in front of traffic of one parallelism, operation and about one size."""

    name: str
    parallelism: str
    windows: tuple[Window, ...]

    @property
    def count(self) -> int:
        """Number of windows."""
        return len(self.windows)

    @property
    def mean_ms(self) -> float:
        """Mean length; an overlap shortens it."""
        return float(np.mean([one.length_ms for one in self.windows]))

    @property
    def mean_idle_ms(self) -> float:
        """Mean time in which the rail is idle: overlaps count as 0."""
        return float(np.mean([max(0.0, one.length_ms) for one in self.windows]))

    @property
    def min_ms(self) -> float:
        """Shortest length."""
        return min(one.length_ms for one in self.windows)

    @property
    def max_ms(self) -> float:
        """Longest length."""
        return max(one.length_ms for one in self.windows)

    @property
    def mean_bytes(self) -> float:
        """Mean size of the traffic."""
        return float(np.mean([one.size_bytes for one in self.windows]))


def lengths_ms(windows: Iterable[Window | float]) -> FloatArray:
    """Return window lengths as an array.

    Raises
    ------
    InputError
        If there is no window, or a length is not a number.
    """
    lengths = np.array(
        [one.length_ms if isinstance(one, Window) else float(one) for one in windows],
        dtype=np.float64,
    )
    if not len(lengths):
        raise wrong_setting("windows", "at least one window is needed (the list is empty)")
    if not np.isfinite(lengths).all():
        raise wrong_setting("windows", "must be finite numbers")
    return lengths


def share_above(windows: Iterable[Window | float], ms: float) -> float:
    """Return the share of windows longer than ``ms``, 0 to 1.

    Raises
    ------
    InputError
        If there is no window.
    """
    return float((lengths_ms(windows) > ms).mean())


def hides(window: Window, dark_ms: float) -> bool:
    """Return whether a change of ``dark_ms`` fits into a window."""
    return window.length_ms >= dark_ms - _EPS_MS


def share_hiding(windows: Sequence[Window], dark_ms: float) -> float:
    """Return the share of windows that hide a change of ``dark_ms``; 0 where there is none."""
    return sum(hides(one, dark_ms) for one in windows) / len(windows) if windows else 0.0


def cdf(windows: Iterable[Window | float]) -> tuple[FloatArray, FloatArray]:
    """Return (lengths ascending, share of windows up to each), the curve of Fig. 4a.

    Raises
    ------
    InputError
        If there is no window.
    """
    lengths = np.sort(lengths_ms(windows))
    return lengths, np.arange(1, len(lengths) + 1) / len(lengths)


def by_class(windows: Sequence[Window]) -> tuple[TrafficClass, ...]:
    """Return windows by parallelism, operation and MiB of what follows (Fig. 4b), smallest first.

    Raises
    ------
    InputError
        If there is no window.
    """
    lengths_ms(windows)
    members: dict[tuple[str, str, int], list[Window]] = {}
    for window in windows:
        size = round(window.size_bytes / MIB) if window.size_bytes >= MIB else 0
        members.setdefault((window.after, window.operation, size), []).append(window)
    classes = (
        TrafficClass(
            f"{parallelism} {operation.replace('_', '-')}, "
            + (f"{size:,} MiB" if size else "below 1 MiB"),
            parallelism,
            tuple(same),
        )
        for (parallelism, operation, size), same in members.items()
    )
    return tuple(sorted(classes, key=lambda one: (one.mean_bytes, one.name)))


def by_traffic(windows: Sequence[Window]) -> tuple[TrafficClass, ...]:
    """Return windows by the traffic after them, largest first, the rarest in one class.

    Sizes of the same two leading digits are one class, named by its operation; the name is empty
    where that is unknown.
    """
    members: dict[tuple[str, str, str], list[Window]] = {}
    for one in windows:
        members.setdefault((one.after, one.operation, f"{one.size_bytes:.2g}"), []).append(one)
    if len(members) > MAX_CLASSES:
        often = Counter({key: len(same) for key, same in members.items()})
        kept = [key for key, _ in often.most_common(MAX_CLASSES - 1)]
        rest = [one for key, same in members.items() if key not in kept for one in same]
        members = {key: members[key] for key in kept} | {(rest[0].after, "other traffic", ""): rest}
    classes = [
        TrafficClass(operation.replace("_", " "), parallelism, tuple(same))
        for (parallelism, operation, _), same in members.items()
    ]
    return tuple(sorted(classes, key=lambda one: -one.mean_bytes))


def mib(size_bytes: float) -> str:
    """Return bytes as the paper counts them, in MiB (GiB from ten of them): 64 MiB, < 0.01 MiB."""
    value = size_bytes / MIB
    if value >= 1024 * 10:
        return f"{short(value / 1024)} GiB"
    if value >= 100:
        return f"{value:,.0f} MiB"
    return f"{short(value)} MiB" if value >= 0.01 else "< 0.01 MiB"
