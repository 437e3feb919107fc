"""Which choices of the lowering a user left open, and what the fixed ones say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from topox_core.model.rings import RING_KINDS
from topox_core.model.transfer_graph import Lowering

AUTO, DEFAULT = "auto", "default"


def lowering_and_free(
    given: Mapping[str, Any], model: str, others: str | None = None
) -> tuple[Lowering, tuple[str, ...]]:
    """Return the lowering of the choices that were made, and the names of those that are free.

    What is not given is free, except in the printed model. ``strides`` fix the rings; ``steps`` and
    ``broadcast`` fix the algorithms of the kinds of collective that they speak of.

    Parameters
    ----------
    given
        Fields of a lowering; ``rings`` may be ``auto``.
    others
        ``auto`` or ``default`` for the kinds of collective that ``given`` names no algorithm of.
    """
    by_itself = DEFAULT if model == "paper" else AUTO
    fields = dict(given)
    rings = fields.get("rings", DEFAULT if "strides" in fields else by_itself)
    if rings in (AUTO, DEFAULT):
        fields.pop("rings", None)
    words = dict(fields.get("algorithm", ()))
    if others is None and "algorithm" not in fields and by_itself == AUTO:
        words |= dict.fromkeys(RING_KINDS, DEFAULT) if "steps" in fields else {}
        words |= {"broadcast": DEFAULT} if "broadcast" in fields else {}
    open_to_all = {"rings": rings, "algorithm": others or by_itself}
    free = tuple(name for name, word in open_to_all.items() if word == AUTO)
    return Lowering(**{**fields, "algorithm": tuple(sorted(words.items()))}), free
