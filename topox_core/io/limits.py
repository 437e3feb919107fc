"""Every limit that a file meets, in one table, and the checks that refuse what is out of range with one line.

What is larger is refused before memory is spent: docs/files.md lists the limits for users,
docs/security.md says how they are tested. Sizes hold for a file as it is given and again for what it
unpacks to.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypeGuard

from topox_core.errors import refuse_if, shown

MB = 1 << 20
# The largest file of any format; the browser's own limit (.streamlit/config.toml) is the same.
MAX_FILE_BYTES = 150 * MB
# gzip files are made of members; archivers write one, or one for every 64 KB.
MAX_GZIP_MEMBERS = 10_000
# One line of a table, or one event of a recording, is held as a whole.
MAX_ENTRY_CHARACTERS = 8_000_000
# All that a recording holds besides its events.
MAX_REST_CHARACTERS = 2_000_000
# Tables: cells of one row, rows (blank ones too), cells of all rows.
MAX_COLUMNS = 256
MAX_ROWS = 1_000_000
MAX_CELLS = 20_000_000

# A task graph.
MAX_TASKS = 500_000
# One that is generated.
MAX_GENERATED_TASKS = 200_000
# One that a text workload is expanded to: twice as many took more than 5 CPU seconds where processors are shared.
MAX_EXPANDED_TASKS = 100_000
MAX_DEPENDENCIES = 2_000_000
MAX_MEMBERS = 2_000_000
# FlexNet's tables: tasks, operators, devices and links together.
MAX_FLEXNET_TABLES = 1_000_000


@dataclass(frozen=True)
class Limits:
    """How large a file of one format may be.

    Attributes
    ----------
    file_bytes
        As given, and again unpacked.
    entries
        Of its longest list (tasks, jobs, rows); 0 if it has none.
    keys
        Of any one object in it.
    """

    file_bytes: int
    entries: int = 0
    keys: int = 32

    @property
    def objects(self) -> int:
        """How many objects a JSON file may hold, those in its entries and besides them."""
        return self.entries + 1_000

    @property
    def values(self) -> int:
        """How many values a JSON file may hold: of its entries, and in lists within them."""
        return 20 * self.entries + MAX_DEPENDENCIES + MAX_MEMBERS


TASK_GRAPH = Limits(MAX_FILE_BYTES, MAX_TASKS, keys=17)
CLUSTER = Limits(1 * MB)
JOBS = Limits(32 * MB, 20_000)
STRATEGY = Limits(4 * MB, 10_000)
TRAINING_JOB = Limits(1 * MB)
MEASURED = Limits(4 * MB, 10_000)
PARTS = Limits(1 * MB, 1_000)
OFFERS = Limits(1 * MB, 40)
LAB = Limits(256 * 1024, 40)
ANSWERS = Limits(256 * 1024, keys=400)
STUDY = Limits(16 * MB, 100_000)
WINDOWS = Limits(64 * MB, 200_000)
SCHEDULE = Limits(MAX_FILE_BYTES, 1_200_000, keys=64)
PSPLIB = Limits(20 * MB, 100_000)
# Recorded runs: a file of one rank, unpacked; what is kept of all of them; ranks.
RECORDING = Limits(2_000 * MB, 5_000_000)
RECORDING_IN_BROWSER = Limits(400 * MB, 5_000_000)
# All files of a run that a browser brings at once, as they are.
RECORDINGS_IN_BROWSER_BYTES = 600 * MB
MAX_RANKS = 4_096
# Steps of a file; and what is kept as objects: communications, scopes of the host, and waits.
MAX_STEPS = 2_000
MAX_KEPT_OBJECTS = 500_000
# Dependencies of all nodes of a run, before what takes no time is passed through.
MAX_RUN_DEPENDENCIES = 4 * MAX_DEPENDENCIES
# Members of all calls together, before calls are bundled: a graph may have a tenth of them.
MAX_CALL_MEMBERS = 10 * MAX_MEMBERS
# Texts and lists that these tell, each text once: a group of 4,096 ranks takes 24 kB as text.
MAX_TOLD_BYTES = 200 * MB
CHAKRA = Limits(200 * MB, MAX_TASKS)
# JSON that is read as a whole: an execution trace, a host trace, groups.
WHOLE_JSON = Limits(24 * MB, MAX_TASKS)
TEXT_WORKLOAD = Limits(20 * MB, 200_000)
NETWORK = Limits(1 * MB, 1_000)
# A description of a cluster by hosts, switches and links: links it stands for, written out.
INFRAGRAPH = Limits(4 * MB, 2_000_000)
MAX_NESTING = 16
# A matrix of demands: rows, and as many columns.
DEMAND = Limits(8 * MB, 256)


def check_count(count: int, most: int, what: str, file: str = "", field: str = "") -> None:
    """Refuse more of something than there may be.

    Parameters
    ----------
    what
        Ends the sentence: ``rows a schedule may have``.

    Raises
    ------
    InputError
        If ``count`` is above ``most``; file and field are named.
    """
    refuse_if((count > most, f"holds more than the {most:,} {what}"), file=file, field=field)


def is_whole(value: object, least: int = 1, most: float = math.inf) -> TypeGuard[int]:
    """Return whether ``value`` is a whole number (no truth value) from ``least`` to ``most``."""
    return isinstance(value, int) and not isinstance(value, bool) and least <= value <= most


def is_number(
    value: object, least: float = 0.0, most: float = math.inf, *, above: bool = False
) -> TypeGuard[float]:
    """Return whether ``value`` is a finite number from (or above) ``least`` to ``most``."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return (value > least if above else value >= least) and value <= most and value < math.inf


def number_in(text: str) -> float:
    """Return the number that a text is; NaN if it is none."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def check_one_of(value: object, choices: Iterable[str], *, file: str = "", field: str = "") -> None:
    """Refuse what is none of the words in ``choices``.

    Raises
    ------
    InputError
        If it is not; file and field are named.
    """
    names = list(choices)
    refuse_if(
        (value not in names, f"must be one of {', '.join(names)} (got {shown(value)})"),
        file=file,
        field=field,
    )


def check_text(
    value: object, most: int, least: int = 0, *, file: str = "", item: str = "", field: str = ""
) -> None:
    """Refuse what is not printable text of ``least`` (blank counts as nothing) to ``most`` characters.

    Raises
    ------
    InputError
        If it is not; file, item and field are named.
    """
    readable = isinstance(value, str) and value.isprintable() and len(value) <= most
    span = f"{least} to {most}" if least else f"at most {most}"
    refuse_if(
        (
            not readable or (least and not str(value).strip()),
            f"must be printable text of {span} characters (got {shown(value)})",
        ),
        file=file,
        item=item,
        field=field,
    )


def check_whole(
    value: object,
    least: int = 1,
    most: int | None = None,
    *,
    file: str = "",
    item: str = "",
    field: str = "",
) -> None:
    """Refuse what is not a whole number from ``least`` to ``most``.

    Raises
    ------
    InputError
        If it is not; file, item and field are named.
    """
    span = f"of at least {least}" if most is None else f"from {least:,} to {most:,}"
    refuse_if(
        (
            not is_whole(value, least, math.inf if most is None else most),
            f"must be a whole number {span} (got {shown(value)})",
        ),
        file=file,
        item=item,
        field=field,
    )


def check_number(
    value: object, least: float = 0.0, *, above: bool = False, file: str = "", field: str = ""
) -> None:
    """Refuse what is not a finite number of at least (or above) ``least``.

    Raises
    ------
    InputError
        If it is not; file and field are named.
    """
    refuse_if(
        (
            not is_number(value, least, above=above),
            f"must be a number {'above' if above else 'of at least'} {least:g} (got {shown(value)})",
        ),
        file=file,
        field=field,
    )
