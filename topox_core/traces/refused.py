"""The one error for a trace that is sound and yet cannot carry what was asked of it."""

from __future__ import annotations

from topox_core.errors import InputError


class Refused(InputError):
    """The trace cannot carry the claim; commands end with status 1, not 2."""
