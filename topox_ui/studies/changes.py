"""A change of the page's study: taken whole if it is a study afterwards, else said in a line and not taken."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

from topox_core.errors import InputError
from topox_ui.state.notices import notify
from topox_ui.state.widgets import control
from topox_ui.studies.planning import record_now, take
from topox_ui.studies.state import StudiesState

# Is given the record of a study and what a control was set to.
Change = Callable[[dict[str, Any], Any], None]


def apply_change(change: Change, value: Any) -> None:
    """Take one change of the study; one that cannot be is said in a line and not taken."""
    record = copy.deepcopy(record_now())
    try:
        change(record, value)
        take(record)
    except InputError as error:
        notify("error", str(error))
    except (ValueError, KeyError, IndexError) as error:
        notify("error", f"This cannot be taken: {error}")


def field(kind: str, label: str, name: str, value: Any, change: Change, **more: Any) -> None:
    """Draw a control of one part of the study's record."""
    control(
        kind,
        label,
        StudiesState,
        f"build_{name}",
        value=value,
        take=partial(apply_change, change),
        **more,
    )
