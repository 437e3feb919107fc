"""What a link to a lab carries: the lab, the seed, the screen, its slider; no answer and no name."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from topox_core.labs.generators.generator import SEEDS
from topox_core.labs.lab import BASE
from topox_ui.state.page_state import Count, NotNegative, PageState


class LabsState(PageState):
    """The lab that is open (empty: the cards), the screen from 1, the seed, where the slider stands, the language."""

    prefix = "lab."
    resets = {"id": ("q", "at", "seed"), "q": ("at",)}  # noqa: RUF012

    id: Annotated[str, Field(pattern=r"^([a-z][a-z0-9-]{1,39})?$")] = ""
    seed: Annotated[int, Field(ge=0, lt=SEEDS)] | None = None
    q: Count = 1
    at: NotNegative | None = None
    lang: Annotated[str, Field(pattern=r"^[a-z]{2}(-[A-Z]{2})?$")] = BASE
