"""What can be chosen on the page Studies."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, create_model

from topox_ui.state.session import PageState, split_words

VIEWS = {
    "lines": "Lines",
    "parallel": "Parallel coordinates",
    "table": "Table",
    "build": "Change the study",
}
Name = Annotated[str, Field(max_length=80)]
Item = Annotated[str, Field(max_length=160, pattern=r"^[^,|]+(\|[^,|]+){1,2}$")]
# The measures and axes in view, each by its name; empty for the usual one.
NAMES = ("measure", "against", "across", "up", "along", "each", "cloud_x", "cloud_y")
OF_NAMES: Any = dict.fromkeys(NAMES, (Name, ""))
Items = Annotated[tuple[Item, ...], BeforeValidator(split_words), Field(max_length=24)]


class StudiesState(create_model("Named", __base__=PageState, **OF_NAMES)):  # type: ignore[misc, call-overload]
    """The study and how it is looked at.

    Attributes
    ----------
    of
        The study as its file has it, on one line; empty while none is chosen.
    measure, against
        What the map and the lines show, and the fabric it is divided by.
    across, up
        The axes of the map.
    at
        ``key|position``: which value of an axis that the map does not span; its first value else.
    along, each
        The axis of the lines, and that of which each value is a line.
    cloud_x, cloud_y
        The measures of the cloud.
    ranges
        ``number|from|to``: what parallel coordinates leave in.
    """

    prefix = "study."
    resets: ClassVar = {"of": (*NAMES, "at", "ranges")}

    of: Annotated[str, Field(max_length=20_000)] = ""
    at: Items = ()
    ranges: Items = ()
    see: Literal["lines", "parallel", "table", "build"] = "lines"
    others: bool = False

    def position(self, key: str) -> int | None:
        """Return which value of an axis was chosen; None where none was."""
        found = self.items("at").get(key)
        return int(found[0]) if found and found[0].isascii() and found[0].isdigit() else None

    def items(self, field: str) -> Mapping[str, tuple[str, ...]]:
        """Return the items of a field by what they begin with."""
        pairs = (one.split("|") for one in getattr(self, field))
        return {first: tuple(rest) for first, *rest in pairs}

    def with_item(self, field: str, first: str, *rest: object) -> tuple[str, ...]:
        """Return the items of a field with one set anew; without anything behind it is left out."""
        now = {k: v for k, v in self.items(field).items() if k != first}
        if rest:
            now[first] = tuple(map(str, rest))
        return tuple("|".join((k, *v)) for k, v in now.items())
