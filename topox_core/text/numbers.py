"""Numbers and sentences as people read them: three significant digits, units always, lists, "and 3 more", how a run ended."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime

NBSP = "\u00a0"


def short(value: float) -> str:
    """Return three significant digits: 0.0123, 32.2, 185, 5,270; exact values bare: 0.5, 7."""
    if not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    rounded = float(f"{value:.3g}")
    magnitude = math.floor(math.log10(abs(rounded)))
    if magnitude >= 2:
        return f"{rounded:,.0f}"
    if magnitude < -4:
        return f"{rounded:.2e}"
    text = f"{rounded:.{2 - magnitude}f}"
    exact = abs(rounded - value) <= 1e-9 * abs(value)
    return text.rstrip("0").rstrip(".") if exact and "." in text else text


def time(value_ms: float) -> str:
    """Return a time given in ms: in ms below a second, in s above, in µs below 0.01 ms."""
    if abs(value_ms) >= 1000:
        return f"{short(value_ms / 1000)}{NBSP}s"
    if 0 < abs(value_ms) < 0.01:
        return f"{short(value_ms * 1000)}{NBSP}µs"
    return f"{short(value_ms)}{NBSP}ms"


def apart(values_ms: Sequence[float]) -> list[str]:
    """Return times as :func:`time` does, with more digits where different ones look equal."""
    words = [time(value) for value in values_ms]
    different = len({f"{value:.9g}" for value in values_ms})
    for digits in range(4, 10):
        if len(set(words)) >= different:
            break
        words = [
            f"{value / 1000:,.{digits}g}{NBSP}s"
            if abs(value) >= 1000
            else f"{value:,.{digits}g}{NBSP}ms"
            for value in values_ms
        ]
    return words


def seconds(value_s: float) -> str:
    """Return a wall time given in s: 0.003 s, 12.4 s, 2 min 5 s."""
    if value_s >= 120:
        return f"{int(value_s // 60)}{NBSP}min {int(value_s % 60)}{NBSP}s"
    return f"{short(value_s)}{NBSP}s" if value_s >= 0.001 else f"<{NBSP}0.001{NBSP}s"


def about_seconds(value_s: float) -> str:
    """Return a wall time to two digits below 100 s: what a solve took is no sharper."""
    return seconds(float(f"{value_s:.2g}") if value_s < 100 else value_s)


def percent(share: float) -> str:
    """Return a share (0 to 1) as a percentage: 0 %, 1.01 %, 43.0 %, 100 %."""
    return f"{short(100 * share)}{NBSP}%"


def whole_percent(share: float) -> str:
    """Return a share in whole percent for a cell of a map, in tenths below one: 12, 0.5."""
    return short(round(100 * share) or round(100 * share, 1))


def count(value: int) -> str:
    """Return a count, whole, thousands separated by commas."""
    return f"{int(value):,}"


def plural(value: int, word: str, words: str = "") -> str:
    """Return a count with its noun: 1 task, 2,310 tasks."""
    return f"{count(value)}{NBSP}{word if value == 1 else words or word + 's'}"


def size(value_bytes: float) -> str:
    """Return bytes with a decimal prefix: 64.0 MB, 1.2 GB."""
    return _in_units(value_bytes, _BYTES, "B")


def delay_label(delay_ms: float) -> str:
    """Return a delay as axes and lists write it: 0 ms, 10 ns, 20 µs, 1 ms."""
    if 0 < delay_ms < 1e-3:
        return f"{delay_ms * 1e6:.3g} ns"
    if 0 < delay_ms < 0.1:
        return f"{delay_ms * 1000:.3g} µs"
    return f"{delay_ms:g} ms"


def in_1024s(count: float) -> str:
    """Return a number of tokens or jobs, whole multiples of 1,024 as ``8k``."""
    return f"{count / 1024:g}k" if count and count % 1024 == 0 else f"{count:,g}"


def delay_in_sentence(delay_ms: float) -> str:
    """Return a delay within a sentence: no delay, 20.0 µs, 1 ms."""
    return time(delay_ms) if delay_ms else "no delay"


_USD = ((1e9, "B"), (1e6, "M"), (1e3, "k"))
_WATTS = ((1e6, "MW"), (1e3, "kW"))
_KWH = ((1e6, "GWh"), (1e3, "MWh"))
_BYTES = ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB"))


def large(value: float) -> str:
    """Return a number that may be large: 8.93 M, 455 k, 37.5."""
    return _in_units(value, _USD, "")


def money(usd: float) -> str:
    """Return dollars: $1.29 M, $455 k, $37.5."""
    return "$" + large(usd)


def power(watts: float) -> str:
    """Return watts: 11.0 kW, 1.06 MW, 850 W."""
    return _in_units(watts, _WATTS, "W")


def energy(kwh: float) -> str:
    """Return kilowatt-hours: 126 MWh, 850 kWh."""
    return _in_units(kwh, _KWH, "kWh")


def amount_words(value: float, measure: str) -> str:
    """Return a cost in dollars or a power in watts."""
    return money(value) if measure == "cost" else power(value)


def _in_units(value: float, units: Sequence[tuple[float, str]], smallest: str) -> str:
    for factor, unit in units:
        if abs(value) >= factor * 0.9995:
            return f"{short(value / factor)}{NBSP}{unit}"
    return f"{short(value)}{NBSP}{smallest}" if smallest else short(value)


def unit_of(top: float, measure: str) -> tuple[float, str]:
    """Return the factor and the unit of an axis that ends at ``top``."""
    units = _USD if measure == "cost" else _WATTS
    return next(
        ((factor, unit) for factor, unit in units if top >= factor * 0.5),
        (1.0, "" if measure == "cost" else "W"),
    )


def when(started: float) -> str:
    """Return a time since the epoch as a list has it, in the server's time zone: 22 Nov 2026, 10:14; of no calendar empty."""
    try:
        moment = datetime.fromtimestamp(started)
    except (OverflowError, OSError, ValueError):
        return ""
    return f"{moment:%d %b %Y, %H:%M}".lstrip("0")


# -- sentences --------------------------------------------------------------------------------------

# A schedule's card.
STOPPED_BY = {
    "proof": "proof",
    "lowering": "proof for this lowering",
    "time_limit": "time limit",
    "gap": "gap reached",
    "cancelled": "cancelled",
    "heuristic": "end of its search",
    "failed": "solver failed",
}
# A round of jobs.
ROUND_STOPPED_BY = {**STOPPED_BY, "cancelled": "you"}
# A search for a parallelisation strategy, under the number of strategies tried.
STRATEGY_STOPPED_BY = {
    "budget": "as many as allowed",
    "cancelled": "stopped by you",
    "proof": "then all tried",
    "fixed": "nothing left to choose",
}
# The end of a printed line.
ENDED = {
    "proof": "proved",
    "lowering": "proved for this lowering",
    "time_limit": "stopped by the time limit",
    "gap": "stopped at the gap asked for",
    "cancelled": "cancelled",
    "heuristic": "ended without a proof",
    "failed": "the solver failed",
}


def enumeration(words: Sequence[object], joint: str = "and") -> str:
    """Return words as a sentence lists them: a; a and b; a, b and c."""
    *first, last = map(str, words)
    return f"{', '.join(first)} {joint} {last}" if first else last


def at_delay(delay_ms: float) -> str:
    """Return a reconfiguration delay as the beginning of a sentence."""
    return f"At a delay of {time(delay_ms)}" if delay_ms else "Without a delay"


def from_to(times_ms: Iterable[float]) -> str:
    """Return times that are called equal in words: one, or the least and the most of them."""
    ordered = sorted(times_ms)
    return enumeration(list(dict.fromkeys([time(ordered[0]), time(ordered[-1])])), "to")


def first_that_holds(*rows: tuple[object, str]) -> str:
    """Return the words beside the first condition that holds."""
    return next(words for holds, words in rows if holds)


def and_more(count: int, listed: int) -> str:
    """Return what follows the first ``listed`` of ``count`` things: nothing, or `` and 3 more``."""
    return f" and {count - listed:,} more" if count > listed else ""


def is_or_are(count: int) -> str:
    """Return the verb that goes with a count."""
    return "is" if count == 1 else "are"


def words_of(name: str) -> str:
    """Return the name of a field as words: ``microbatch_size`` is ``Microbatch size``."""
    return name.replace("_", " ").capitalize()


def capitalised(words: str) -> str:
    """Return words with a capital at the beginning, the rest as it is."""
    return words[:1].upper() + words[1:]


def uncapitalised(words: str) -> str:
    """Return words for the middle of a sentence: abbreviations keep their capitals."""
    return words if words[:2].isupper() else words[:1].lower() + words[1:]
