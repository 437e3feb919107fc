"""Tables in and out: CSV read row by row within limits, and written so that no cell is a formula."""

import csv
import io
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from typing import Any

from topox_core.errors import InputError, check_known, printable, refuse_if, shown
from topox_core.io.content import decoded, whole
from topox_core.io.limits import MAX_CELLS, MAX_COLUMNS, MAX_ENTRY_CHARACTERS, MAX_ROWS, Limits
from topox_core.text.numbers import first_that_holds

DELIMITERS = (",", ";", "\t")
_LINE = re.compile(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+")
_SEP_LINE = re.compile(r'"?sep=(.)"?')
# A cell that a spreadsheet would calculate, after any apostrophes; full-width signs count as well.
_FORMULA = re.compile(r"'*[=+\-@\t\r\n＝＋－＠]")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")
# A sign, a number and its unit in words: at most that number comes of it.
_MEASURE = re.compile("[+-]?[0-9.,]*[ \u00a0]?[%A-Za-z \u00a0]*")
# A join may wait for thousands of tasks in one cell; Python's own limit is 131,072 characters.
csv.field_size_limit(MAX_ENTRY_CHARACTERS)


@dataclass(frozen=True)
class Table:
    """A table whose first row names the columns; ``rows`` may be walked through once.

    Each row comes with its number as a spreadsheet counts it; cells are stripped, blank rows are
    left out.
    """

    columns: tuple[str, ...]
    delimiter: str
    rows: Iterator[tuple[int, list[str]]]

    def records(self, file: str) -> Iterator[tuple[int, dict[str, str]]]:
        """Yield each row with its number, its cells by column; raises InputError where it has more cells."""
        more = f"has more cells than the first row names ({len(self.columns)})"
        for number, cells in self.rows:
            too_many = any(cells[len(self.columns) :])
            refuse_if((too_many, more), file=file, item=f"row {number}")
            yield number, dict(zip(self.columns, cells, strict=False))


def read_table(
    data: bytes,
    file: str,
    limits: Limits,
    known: Sequence[str],
    example: str,
    needed: Sequence[str] = (),
) -> Table:
    """Read a table separated by comma, semicolon or tab: whichever splits the first row into most known names.

    Parameters
    ----------
    known
        The columns there may be.
    example
        A first row, for the error of a table that has none.
    needed
        The columns there must be.

    Raises
    ------
    InputError
        If it is empty, a column is unknown, named twice or missing, or a row, the table or the file is
        larger than a limit; later errors come while the rows are read.
    """
    lines = _lines(data, file, limits)
    number, header = _header(lines, file)
    delimiter = _delimiter(header, file, known, example)
    rows = _rows(chain([header], lines), delimiter, file, number)
    columns = tuple(next(rows, (0, []))[1])
    for column in filter(None, columns):
        place = {"file": file, "item": "first row", "field": printable(column)}
        check_known(column, known, "column", **place)
        refuse_if(
            (columns.count(column) > 1, "is the name of two columns"),
            file=file,
            item="first row",
            field=column,
        )
    for column in needed:
        refuse_if(
            (column not in columns, "is missing: every table needs this column"),
            file=file,
            item="first row",
            field=column,
        )
    return Table(columns, delimiter, rows)


def read_rows(data: bytes, file: str, limits: Limits) -> Iterator[tuple[int, list[str]]]:
    """Return the rows of a table without names, separated by what its first row has most of; raises as :func:`read_table`."""
    lines = _lines(data, file, limits)
    number, first = _header(lines, file)
    return _rows(chain([first], lines), max(DELIMITERS, key=first.count), file, number)


def _lines(data: bytes, file: str, limits: Limits) -> Iterator[str]:
    """Yield the lines of a file, whichever of the three ends they have."""
    for found in _LINE.finditer(decoded(whole(data, file, limits), file)):
        if found.end() - found.start() > MAX_ENTRY_CHARACTERS:
            raise InputError(
                f"holds a row of more than {MAX_ENTRY_CHARACTERS:,} characters", file=file
            )
        yield found[0]


def _header(lines: Iterator[str], file: str) -> tuple[int, str]:
    """Return number and text of the first row that says something."""
    for number, line in enumerate(islice(lines, MAX_ROWS), 1):
        separator = number == 1 and _SEP_LINE.fullmatch(line.strip())
        if line.strip(" ,;\t\r\n") and not separator:
            return number, line
    raise InputError("is empty", file=file)


def _rows(
    source: Iterator[str], delimiter: str, file: str, number: int
) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(source, delimiter=delimiter, strict=True)
    total = 0
    try:
        for cells in reader:
            total += len(cells)
            if len(cells) > MAX_COLUMNS or total > MAX_CELLS or number > MAX_ROWS:
                what = first_that_holds(
                    (len(cells) > MAX_COLUMNS, f"{MAX_COLUMNS:,} cells in one row"),
                    (total > MAX_CELLS, f"{MAX_CELLS:,} cells"),
                    (True, f"{MAX_ROWS:,} rows"),
                )
                problem = f"holds more than the {what} that a table may have"
                raise InputError(problem, file=file, item=f"row {number}")
            if any(stripped := [cell.strip() for cell in cells]):
                yield number, stripped
            number += 1
    except csv.Error as error:
        problem = f"cannot be read as a table: {error}"
        raise InputError(problem, file=file, item=f"row {number}") from None


def _delimiter(header: str, file: str, known: Sequence[str], example: str) -> str:
    head = header[: 1 << 16]

    def names_known(delimiter: str) -> int:
        return len({cell.strip().strip('"').strip() for cell in head.split(delimiter)} & {*known})

    best = max(DELIMITERS, key=names_known)
    refuse_if(
        (
            names_known(best) == 0,
            "must name the columns, separated by comma, semicolon or tab, such as "
            f"{example} (got {shown(header.strip())})",
        ),
        file=file,
        item="first row",
    )
    return best


def table_bytes(columns: Sequence[str], rows: Iterable[Mapping[str, Any] | Sequence[Any]]) -> bytes:
    """Return rows as CSV, the one way in which a table leaves the workbench.

    Text that a spreadsheet would take for a formula is written behind an apostrophe (``'=1+1``), as
    OWASP advises; numbers stay as they are. Reading takes the apostrophe away again.
    """
    out = io.StringIO(newline="")
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(map(harmless, columns))
    for row in rows:
        cells = [row.get(key) for key in columns] if isinstance(row, Mapping) else row
        writer.writerow([harmless(cell) if isinstance(cell, str) else cell for cell in cells])
    return out.getvalue().encode()


def harmless(cell: str) -> str:
    """Return a cell so that no spreadsheet calculates it."""
    return f"'{cell}" if _FORMULA.match(cell) and not _NUMBER.fullmatch(cell) else cell


def harmless_on_screen(cell: str) -> str:
    """Return a cell of a table that is shown, which a reader may save or copy: differences such as +3 % stay as they are."""
    return cell if _MEASURE.fullmatch(cell) else harmless(cell)


def as_meant(cell: str) -> str:
    """Return a cell without the apostrophe that :func:`harmless` put before it."""
    return cell[1:] if cell.startswith("'") and _FORMULA.match(cell) else cell
