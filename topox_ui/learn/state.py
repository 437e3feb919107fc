"""What can be chosen on the pages Learn and Glossary."""

from typing import Annotated

from pydantic import Field

from topox_core.labs.tour import SCREENS
from topox_core.text.glossary import glossary
from topox_ui.state.session import NotNegative, PageState, one_of


class LearnState(PageState):
    """The screen of the tour, whether its sentences are left out, and where each screen's slider stands."""

    prefix = "learn."

    step: Annotated[int, Field(ge=1, le=len(SCREENS))] = 1
    short: bool = False
    circuits: NotNegative | None = None
    slots: NotNegative | None = None
    delay: NotNegative | None = None
    ports: NotNegative | None = None
    windows: NotNegative | None = None
    sharing: NotNegative | None = None


class GlossaryState(PageState):
    """The words that are looked for, and the entry that a link leads to."""

    prefix = "glossary."

    find: Annotated[str, Field(max_length=60)] = ""
    term: Annotated[str, one_of([*(entry.id for entry in glossary()), ""])] = ""
