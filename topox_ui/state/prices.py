"""At whose prices networks are compared: the reader's choice on the Cost page, which all pages that price a network count with."""

from collections.abc import Collection, Mapping
from typing import Annotated, ClassVar

from topox_core.economics.price_sets import (
    DEFAULT_SET,
    PRICE_SETS,
    Catalogue,
    edits_between,
    with_edits,
)
from topox_core.errors import InputError
from topox_core.schema.fields import setting
from topox_ui.state.session import Lasting, PageState, notify_errors

FILE = "file"
# The prices that the reader brought.
OWN_PRICES = Lasting[Catalogue]("cost_file")


class Prices(PageState):
    """A price set or the reader's file, and the edits on top, as :func:`edits_between` writes them."""

    prefix = "cost."
    resets: ClassVar = {"prices": ("parts",)}

    prices: Annotated[str, setting(choices=(*PRICE_SETS, FILE))] = DEFAULT_SET
    parts: str = ""

    def local(self) -> Collection[str]:
        """Return the prices where they are a file: it stays on the machine that it was loaded on."""
        return ("prices",) if self.prices == FILE else ()

    def check(self) -> None:
        """Raise InputError where a file is named that is not here, or edits that its parts cannot have."""
        if self.prices == FILE and OWN_PRICES.get() is None:
            raise InputError("no file of prices is loaded", field="prices")
        with_edits(self.base(), self.parts)

    def base(self) -> Catalogue:
        """Return the price set or the file that was chosen, before any edit."""
        if self.prices == FILE:
            return OWN_PRICES.get() or PRICE_SETS[DEFAULT_SET]
        return PRICE_SETS[self.prices]


def catalogue() -> Catalogue:
    """Return the prices that hold: the set or the file, with the reader's edits."""
    now = Prices.now()
    with notify_errors():
        return with_edits(now.base(), now.parts)
    Prices.choose(parts=None)
    return now.base()


@notify_errors()
def edit(figures: Mapping[str, Mapping[str, float]]) -> None:
    """Take edits of prices and watts; one that cannot be is named in a line and not taken."""
    Prices.choose(parts=edits_between(Prices.now().base(), catalogue().changed(figures)))
