"""What a session remembers: by name, for how long; the one line for its reader; and the choices on each page.

Whoever adds a name says whether a reload of the page keeps it. ``tests/test_architecture.py`` sees to it that nobody else
writes into Streamlit's session state. A page's choices are one frozen, validated model, which a link writes and reads.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Annotated, Any, ClassVar, Generic, Literal, Self, TypeVar

import msgspec
import streamlit as st
from msgspec.structs import asdict, replace

from topox_core.errors import InputError
from topox_core.schema.fields import fields_of, problems, setting
from topox_core.schema.records import check_fields
from topox_core.text.foreign import escape_untrusted

T = TypeVar("T")
# What a reload keeps: every name that was made with ``Lasting``.
LASTING: set[str] = set()


class Remembered(Generic[T]):
    """One name in the session's state; its two kinds say how long it is remembered."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def there(self) -> bool:
        """Whether something is remembered."""
        return self.name in st.session_state

    def get(self) -> T | None:
        """Return what is remembered, None where nothing is."""
        return st.session_state.get(self.name)

    def get_or(self, make: Callable[[], T]) -> T:
        """Return what is remembered; where nothing is, what ``make`` returns, and remember that."""
        if not self.there:
            self.set(make())
        return st.session_state[self.name]

    def set(self, value: T) -> None:
        """Remember a value."""
        st.session_state[self.name] = value

    def pop(self) -> T | None:
        """Forget, and return, what was remembered."""
        return st.session_state.pop(self.name, None)


class Lasting(Remembered[T]):
    """What a reader would miss after a reload of the page: files, what is loaded, choices."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        LASTING.add(name)


class Passing(Remembered[T]):
    """What belongs to one connection or to the next drawing, and means nothing after a reload."""


def lasting() -> dict[str, Any]:
    """Return what this session remembers and a reload keeps."""
    state = st.session_state
    return {name: state[name] for name in LASTING if name in state}


def put_back(held: dict[str, Any]) -> None:
    """Replace what this session remembers, as far as a reload keeps it, by what another one did."""
    state = st.session_state
    for name in LASTING:
        state.pop(name, None)
    state.update(held)


Kind = Literal["error", "warning", "info", "success"]
Line = tuple[Kind, str]
NOTICE = Passing[Line]("notice")


def notify(kind: Kind, line: str) -> None:
    """Keep one line for the next drawing of the page."""
    NOTICE.set((kind, line))


@contextmanager
def notify_errors() -> Iterator[None]:
    """Keep the line of bad input for the next drawing of the page; also as a decorator of a callback."""
    try:
        yield
    except InputError as error:
        notify("error", str(error))


def has_error() -> bool:
    """Return whether the line that is kept tells of an error."""
    return (NOTICE.get() or ("info", ""))[0] == "error"


def show_notice() -> None:
    """Draw the line that was kept, once."""
    show_line(NOTICE.pop())


def show_line(line: Line | None) -> None:
    """Draw a line, if there is one, in the box of its kind."""
    if line is not None:
        getattr(st, line[0])(escape_untrusted(line[1], "markdown"))


Count = Annotated[int, setting(ge=1, le=1_000_000)]
Index = Annotated[int, setting(ge=0, le=1_000_000)]
NotNegative = Annotated[float, setting(ge=0)]


def as_in(record: type, name: str) -> Any:
    """Return what a choice is annotated with that takes the place of a record's field: its range, steps, unit and words."""
    return fields_of(record)[name].limits


def word_of(value: Any) -> str:
    """Return a value as a link writes it."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return ",".join(map(word_of, value))
    return f"{value:.9g}" if isinstance(value, float) else str(value)


S = TypeVar("S", bound="PageState")


class PageState(msgspec.Struct, frozen=True):
    """What a reader chose on one page.

    A subclass declares its fields with their ranges and defaults, as records of the core do; None
    stands for the value that the page itself begins with. ``prefix`` is what its keys begin with in
    a link, ``resets`` says which fields go back to their defaults when a field changes, and
    ``of_graph`` that all of them do when another graph is loaded.
    """

    prefix: ClassVar[str] = ""
    resets: ClassVar[Mapping[str, Collection[str]]] = {}
    of_graph: ClassVar[bool] = False

    def __post_init__(self) -> None:
        """Refuse what is no value of a field, without a line for the reader: no control of ours offers it."""
        try:
            check_fields(self)
        except InputError as error:
            raise ValueError(str(error)) from None

    @classmethod
    def now(cls) -> Self:
        """Return what was chosen in this session: the defaults while nothing was."""
        return reader_of(cls)()

    @classmethod
    def choose(cls, **changes: Any) -> None:
        """Take choices of the reader; None takes one back, a value that its field cannot have changes nothing."""
        # Refused without a line is a control that the browser has no current options of: it is drawn again.
        with suppress(ValueError), notify_errors():
            put(cls.now().changed(**changes))

    @classmethod
    def default(cls, name: str) -> Any:
        """Return what a field begins with."""
        return fields_of(cls)[name].default

    def changed(self, **changes: Any) -> Self:
        """Return the state with some choices made anew; None takes a choice back.

        Raises
        ------
        ValueError
            If a value is not one that its field may have.
        """
        new = {
            name: self.default(name) if value is None else value for name, value in changes.items()
        }
        reset = {
            other: self.default(other)
            for name, value in new.items()
            if value != getattr(self, name)
            for other in self.resets.get(name, ())
        }
        return replace(self, **(reset | new))

    def choices(self) -> dict[str, Any]:
        """Return what differs from the defaults, by field."""
        return {name: value for name, value in asdict(self).items() if value != self.default(name)}

    def without_what_ifs(self) -> Self:
        """Return the choices with those left out that say what would be if the network were another."""
        return self

    def local(self) -> Collection[str]:
        """Return the fields that no link carries now, such as those of a file on this machine."""
        return ()

    def check(self) -> None:
        """Raise InputError where choices do not go together."""

    @classmethod
    def owns(cls, key: str) -> bool:
        """Return True if a key of a link belongs to this page."""
        return key.startswith(cls.prefix) and key.removeprefix(cls.prefix) in fields_of(cls)

    def to_query(self) -> dict[str, str]:
        """Return the choices as parameters of a link."""
        return {
            self.prefix + name: word_of(value)
            for name, value in self.choices().items()
            if name not in self.local()
        }

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> tuple[Self, dict[str, str]]:
        """Return the state that a link describes, and why not by the keys whose values it cannot have."""
        chosen, wrong = {}, {}
        for key, word in query.items():
            if cls.owns(key):
                field = fields_of(cls)[key.removeprefix(cls.prefix)]
                value = field.value_of(word)
                _, problem = next(problems(field.hint, value), ("", ""))
                if problem:
                    wrong[key] = problem
                else:
                    chosen[field.name] = value
        return cls(**chosen), wrong


def agreeing(
    state: S, names: Iterable[str], check: Callable[[S], object]
) -> tuple[S, dict[str, str]]:
    """Return the state without those of some choices that do not go together with the rest, and why not."""
    left, dropped = list(names), {}

    def without(name: str) -> S:
        return replace(state, **{name: state.default(name)})

    while left and (problem := _problem(state, check)):
        name = next((one for one in reversed(left) if not _problem(without(one), check)), left[-1])
        state = without(name)
        left.remove(name)
        dropped[name] = problem
    return state, dropped


def _problem(state: S, check: Callable[[S], object]) -> str:
    try:
        check(state)
    except InputError as error:
        return error.problem
    return ""


_STATES = Lasting["dict[str, PageState]"]("page_states")
# A choice was made that the address does not say yet.
ADDRESS_DUE = Passing[bool]("address_due")
# The names of the models whose choices the address of the page in view carries.
CARRIED = Passing[Collection[str]]("carried")
# The page in view: the script of its entry, and the word of its view, which the first one has not.
PLACE = Passing[tuple[str, str]]("place")
VIEW_KEY = "view"


def states() -> dict[str, PageState]:
    """Return the states that this session has, by the name of their model."""
    return _STATES.get_or(dict)


def reader_of(model: type[S]) -> Callable[[], S]:
    """Return what reads this session's state of a page outside its runs: a download is built where no session is."""
    known = states()

    def read() -> S:
        state = known.get(model.__name__)
        return state if isinstance(state, model) else model()

    return read


def put(*new: PageState) -> None:
    """Replace states; the address is written before the next drawing."""
    for state in new:
        if state != state.now():
            states()[type(state).__name__] = state
            ADDRESS_DUE.set(True)


def link_query(
    carried: Collection[str] | None = None, of: Mapping[str, PageState] | None = None
) -> dict[str, str]:
    """Return the choices that a link carries, by default one to the page in view as it is now."""
    names = CARRIED.get_or(tuple) if carried is None else carried
    chosen = states() if of is None else of
    return {
        key: text
        for name, state in chosen.items()
        if name in names
        for key, text in state.to_query().items()
    }


def view_query() -> dict[str, str]:
    """Return what the address says of the view in view."""
    _, word = PLACE.get() or ("", "")
    return {VIEW_KEY: word} if word else {}
