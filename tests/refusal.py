"""What is refused, and the line that says so."""

from collections.abc import Callable
from typing import Any

import pytest

from topox_core.errors import InputError


def refusal(asked: Callable[..., object], *given: Any, **named: Any) -> str:
    """Return the one line in which what is asked for is refused."""
    with pytest.raises(InputError) as refused:
        asked(*given, **named)
    line = str(refused.value)
    assert line.isprintable(), "one line"
    return line
