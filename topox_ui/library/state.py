"""What can be chosen on the view Kept runs."""

from typing import Annotated, ClassVar, Literal

from pydantic import BeforeValidator, Field

from topox_core.library.rows import CARD
from topox_ui.state.session import Index, PageState

MAX_COMPARED = 4
KINDS = {
    "": "all kinds",
    "fabric": "a job on one fabric",
    "schedule": "a solve",
    "rail": "a rail",
    "round": "jobs by time division",
    "bill": "a network's cost",
    CARD: "an answer of a published card",
}
Words = Annotated[str, Field(max_length=200)]
# Where a page of the list begins: after the run that started then and has that number.
Place = Annotated[str, Field(pattern=r"^$|^\d{1,12}(\.\d{1,9})?:\d{1,12}$")]
FROM_FIRST = ("before",)


def _numbers(value: object) -> object:
    if isinstance(value, str):
        return [int(word) for word in value.split(",") if word.isascii() and word.isdigit()]
    return value


class RunsState(PageState):
    """Which runs are listed, and which of them are chosen (``chosen``, in the order of their letters)."""

    prefix = "runs."
    resets: ClassVar = dict.fromkeys(
        ("subject", "status", "kind", "mine", "study", "text"), FROM_FIRST
    )

    subject: Words = ""
    status: Annotated[str, Field(max_length=40)] = ""
    kind: Literal["", "fabric", "schedule", "rail", "round", "bill", "card"] = ""
    mine: bool = False
    study: Index | None = None
    text: Words = ""
    before: Place = ""
    chosen: Annotated[
        tuple[Index, ...], BeforeValidator(_numbers), Field(max_length=MAX_COMPARED)
    ] = ()
    settings: bool = False

    @property
    def place(self) -> tuple[float, int] | None:
        """Return where the page of the list begins; None at the newest run."""
        if not self.before:
            return None
        started, _, run = self.before.partition(":")
        return float(started), int(run)
