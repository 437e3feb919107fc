"""What can be chosen on the pages Learn and Glossary."""

from typing import Annotated, Any

from pydantic import Field, create_model

from topox_core.labs.tour import SCREENS
from topox_core.text.glossary import glossary
from topox_ui.state.session import NotNegative, PageState, one_of

OF_SCREENS: Any = dict.fromkeys(SCREENS, (NotNegative | None, None))


class LearnState(create_model("Sliders", __base__=PageState, **OF_SCREENS)):  # type: ignore[misc, call-overload]
    """The screen of the tour, whether its sentences are left out, and where each screen's slider stands."""

    prefix = "learn."

    step: Annotated[int, Field(ge=1, le=len(SCREENS))] = 1
    short: bool = False


class GlossaryState(PageState):
    """The words that are looked for, and the entry that a link leads to."""

    prefix = "glossary."

    find: Annotated[str, Field(max_length=60)] = ""
    term: Annotated[str, one_of([*(entry.id for entry in glossary()), ""])] = ""
