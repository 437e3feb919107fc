"""The run library: what was computed, kept in one file that outlives the program."""

from topox_core.library.rows import (
    RunFilter as RunFilter,
    RunRecord as RunRecord,
    StoredRun as StoredRun,
)
from topox_core.library.run_library import RunLibrary as RunLibrary
