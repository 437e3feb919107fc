"""What can be chosen on the view Which switch, and the switches that are compared."""

from collections.abc import Collection
from typing import Annotated, ClassVar, Literal

from pydantic import AfterValidator, BeforeValidator, Field

from topox_core.errors import InputError
from topox_core.studies.buying import MAX_DEGREES, RIVALS
from topox_core.studies.offers import OFFERS, SwitchProduct, edits_between, with_edit, with_edits
from topox_ui.state.session import Lasting, PageState, notify_errors, some_of, split_words

FILE = "file"
OWN_OFFERS = Lasting[tuple[SwitchProduct, ...]]("buying_offers")


Ports = Annotated[int, Field(ge=1, le=4_096)]


class BuyingState(PageState):
    """What is to be least, among which switches and networks, and what is assumed."""

    prefix = "buy."
    resets: ClassVar = {"offers": ("edits", "left_out")}

    by: Literal["dollars", "time", "price"] = "dollars"
    ports: Annotated[
        tuple[Ports, ...],
        BeforeValidator(split_words),
        Field(max_length=MAX_DEGREES),
        AfterValidator(lambda ports: tuple(sorted(set(ports)))),
    ] = ()
    rivals: Annotated[tuple[str, ...], *some_of(RIVALS), Field(min_length=1)] = tuple(RIVALS)
    offers: Literal["published", "file"] = "published"
    edits: str = ""
    left_out: Annotated[tuple[str, ...], BeforeValidator(split_words), Field(max_length=40)] = ()
    usd_per_gpu_hour: Annotated[float, Field(ge=0, le=10_000)] = 2.0
    gpus_per_server: Annotated[int, Field(ge=1, le=4_096)] | None = None
    usd_per_kwh: Annotated[float, Field(ge=0, le=100)] = 0.10
    years: Annotated[float, Field(ge=0.1, le=100)] = 4.0

    def local(self) -> Collection[str]:
        """Return the switches where they are a file: it stays on the machine that it was loaded on."""
        return ("offers", "edits", "left_out") if self.offers == FILE else ()

    def check(self) -> None:
        """Raise InputError where a file is named that is not here, or edits that its switches cannot have."""
        if self.offers == FILE and OWN_OFFERS.get() is None:
            raise InputError("no file of switches is loaded", field="offers")
        with_edits(self.base(), self.edits)

    def base(self) -> tuple[SwitchProduct, ...]:
        """Return the published switches or those of the file, before any edit."""
        return (OWN_OFFERS.get() or OFFERS) if self.offers == FILE else OFFERS


def all_offers() -> tuple[SwitchProduct, ...]:
    """Return the switches as they are edited, those that are left out among them."""
    now = BuyingState.now()
    with notify_errors():
        return with_edits(now.base(), now.edits)
    BuyingState.choose(edits=None)
    return now.base()


def chosen_offers() -> tuple[SwitchProduct, ...]:
    """Return the switches that are considered."""
    left_out = BuyingState.now().left_out
    return tuple(one for one in all_offers() if one.key not in left_out)


@notify_errors()
def edit(key: str, field: str, level: str, value: float) -> None:
    """Take one edit; one that cannot be is named in a line and not taken."""
    changed = with_edit(all_offers(), key, field, level, value)
    BuyingState.choose(edits=edits_between(BuyingState.now().base(), changed))
