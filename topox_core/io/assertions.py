"""What a design must hold, as rows of a study or job file: ``iteration_ms <= 120``; a command that fails one ends with 3."""

import operator
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from topox_core.errors import InputError, check_known, shown
from topox_core.io.limits import number_in

KEY, FAILED, MAX_ROWS = "assert", 3, 100
_SIGNS: Mapping[str, Callable[[float, float], bool]] = {
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_ROW = re.compile(r"\s*([A-Za-z][\w.]*)\s*(<=|>=|<|>)\s*(\S+)\s*")


@dataclass(frozen=True)
class Assertion:
    """A measure, how it is compared, and with what."""

    measure: str
    sign: str
    limit: float

    def __str__(self) -> str:
        short = f"{self.limit:g}"
        return f"{self.measure} {self.sign} {short if float(short) == self.limit else self.limit}"

    def holds(self, value: object) -> bool:
        """Whether a value keeps it; what is no number keeps nothing."""
        return isinstance(value, int | float) and _SIGNS[self.sign](value, self.limit)


def assertions_of(rows: object, measures: Collection[str]) -> tuple[Assertion, ...]:
    """Return the rows of a file's ``assert``.

    Parameters
    ----------
    measures
        What can be asserted.

    Raises
    ------
    InputError
        If they are no list of rows, or one is none or names an unknown measure; the row is named.
    """
    if not isinstance(rows, list | tuple) or len(rows) > MAX_ROWS:
        raise InputError(
            f"must be a list of at most {MAX_ROWS} rows (got {shown(rows)})", field=KEY
        )
    return tuple(_assertion(row, f"{KEY}[{at}]", measures) for at, row in enumerate(rows))


def _assertion(row: object, field: str, measures: Collection[str]) -> Assertion:
    parts = _ROW.fullmatch(row) if isinstance(row, str) else None
    limit = float("nan") if parts is None else number_in(parts[3])
    if parts is None or limit != limit:
        raise InputError(
            f"must be a measure, <= or >= and a number, such as 'gap <= 0.05' (got {shown(row)})",
            field=field,
        )
    check_known(parts[1], measures, "measure", field=field)
    return Assertion(parts[1], parts[2], limit)


def failures(
    assertions: Iterable[Assertion], values: Mapping[str, object], where: str = ""
) -> Iterator[str]:
    """Yield a line for each assertion on a measure that is there and does not keep it."""
    for one in assertions:
        if one.measure in values and not one.holds(values[one.measure]):
            value = values[one.measure]
            got = f"{value:.6g}" if isinstance(value, float) else str(value)
            yield f"{where}assert {one} failed: {'there is none' if value is None else got}"
