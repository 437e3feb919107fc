"""What a record says of its fields: type, range, unit, words and the steps of a slider."""

import copyreg
import dataclasses
import math
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial, reduce
from types import MappingProxyType, NoneType, UnionType
from typing import Annotated, Any, Literal, Union, cast, get_args, get_origin, get_type_hints

import msgspec

from topox_core.errors import printable, shown, unknown

WITHOUT_SPACES, WITHOUT_OUTER_SPACES, PRINTABLE = "spaces", "outer spaces", "nothing"
MAX_BITS = 1023  # whole numbers beyond are no floats
_ANY = msgspec.Meta()
_SAYS = (
    *("title", "description", "ge", "gt", "le", "lt"),
    *("min_length", "max_length", "pattern"),
)
# Fields go to other processes, with keys of studies.
copyreg.pickle(
    msgspec.Meta,
    lambda one: (partial(msgspec.Meta, **{k: getattr(one, k) for k in (*_SAYS, "extra")}), ()),
)


def setting(
    title: str = "",
    unit: str = "",
    description: str = "",
    *,
    steps: Sequence[float] = (),
    choices: Iterable[str | int] = (),
    without: str = "",
    key: str = "",
    like: str = "",
    **limits: Any,
) -> Any:
    """Return what a field is annotated with.

    Parameters
    ----------
    title, unit, description
        Its name on pages, what it is counted in, and one line of help.
    steps
        Values that a slider offers.
    choices
        The words, or the numbers, that it may be.
    without
        Of text, which must be printable: without which spaces.
    key
        What files call it, if that is no name of a field (``from``).
    like
        Of text that has a ``pattern``: what that asks for, in words.
    **limits
        ``ge``, ``gt``, ``le`` of numbers; ``min_length``, ``max_length`` of text and lists;
        ``pattern`` of text.
    """
    extra = {
        "unit": unit,
        "steps": tuple(steps),
        "choices": tuple(choices),
        "without": without,
        "key": key,
        "like": like,
    }
    words: dict[str, Any] = {"title": title or None, "description": description or None, **limits}
    return msgspec.Meta(extra=extra, **words)


def plain_setting(
    title: str, description: str, *words: str, choices: Sequence[str | int] = (), **limits: Any
) -> Any:
    """Return what a field is annotated with that is counted in nothing: its name, a line of help, the words it may be."""
    return setting(title, description=description, choices=words or choices, **limits)


def _whole(text: str) -> int:
    """Return the whole number that text is, 2.0 and 1e3 among them."""
    with suppress(ValueError):
        return int(text)
    if not float(text).is_integer():
        raise ValueError
    return int(float(text))


_OF_TEXT: Mapping[type, Callable[[str], Any]] = {
    bool: {"yes": True, "true": True, "no": False, "false": False}.__getitem__,
    int: _whole,
    float: float,
}


@dataclass(frozen=True)
class Field:
    """One field of a record, as files, options, controls and studies know it.

    Attributes
    ----------
    hint
        Its type, with what it is annotated with.
    kind
        The type without ``None`` and without words; of a choice, ``Literal``.
    required
        Whether it has no default.
    limits
        Its range and its words.
    key
        What files call it.
    title, description
        Its name on pages, and one line of help.
    unit
        What it is counted in; empty for a plain number.
    steps
        Values that a slider offers.
    group
        What it belongs to, where fields of several records stand side by side.
    """

    name: str
    hint: Any
    required: bool
    default: Any
    kind: Any
    limits: msgspec.Meta
    key: str
    title: str
    description: str
    unit: str
    steps: tuple[float, ...]
    group: str = ""

    @property
    def label(self) -> str:
        """Its name with the unit, as an axis or a control has it."""
        return f"{self.title} ({self.unit})" if self.unit else self.title

    @property
    def help(self) -> str:
        """Its description with the unit, as an option of a command has it."""
        return f"{self.description} ({self.unit})" if self.unit else self.description

    @property
    def alternatives(self) -> tuple[tuple[Any, msgspec.Meta], ...]:
        """The types that it may be besides null, each with its range: of most fields one."""
        own = self.limits
        return tuple(_bare(one, own) for one in _without_null(self.kind))

    @property
    def choices(self) -> tuple[Any, ...]:
        """The words it may be, in order; empty if there are none."""
        return tuple(word for kind, limits in self.alternatives for word in _choices(kind, limits))

    def value_of(self, text: str) -> Any:
        """Return the value that text stands for, of a list one part by commas; the text itself where it is none."""
        for kind, _ in self.alternatives:
            if get_origin(kind) is tuple:
                one = field_of(get_args(kind)[0])
                return tuple(one.value_of(part) for part in dict.fromkeys(text.split(",")) if part)
            with suppress(ValueError, KeyError):
                return _OF_TEXT[kind](text)
        return text


def text_of(value: Any) -> str:
    """Return the text of which :meth:`Field.value_of` makes a value again."""
    return ("no", "yes")[value] if isinstance(value, bool) else str(value)


@cache
def fields_of(record: type) -> Mapping[str, Field]:
    """Return the fields of a dataclass or a Struct by name, in their order."""
    hints = get_type_hints(record, include_extras=True)
    return MappingProxyType(
        {one.name: _field(one, hints[one.name]) for one in msgspec.structs.fields(record)}
        if issubclass(record, msgspec.Struct)
        else {
            one.name: _field(one, hints[one.name])
            for one in dataclasses.fields(cast("Any", record))
        }
    )


def field_of(hint: Any) -> Field:
    """Return a field of no record."""
    return _field(dataclasses.field(), hint)


def _field(one: Any, hint: Any) -> Field:
    absent = (msgspec.NODEFAULT, dataclasses.MISSING)
    required = one.default in absent and one.default_factory in absent
    kind, limits = _bare(hint)
    if limits is _ANY and len(others := _without_null(kind)) > 1:
        limits = _bare(others[0])[1]  # whose words are those of the field
    extra = limits.extra or {}
    return Field(
        one.name,
        hint,
        required,
        None if one.default in absent else one.default,
        kind,
        limits,
        key=extra.get("key") or one.name,
        title=limits.title or "",
        description=limits.description or "",
        unit=extra.get("unit", ""),
        steps=extra.get("steps", ()),
    )


def _choices(kind: Any, limits: msgspec.Meta) -> tuple[Any, ...]:
    if get_origin(kind) is Literal:
        return get_args(kind)
    return tuple((limits.extra or {}).get("choices", ()))


def plain(hint: Any, within: Callable[[type], Any] | None = None) -> Any:
    """Return a type as msgspec checks it, choices included; ``within`` says what stands for a record within, else anything."""
    kind, limits = _bare(hint)
    if choices := _choices(kind, limits):
        return Literal[choices] | None if _may_be_null(hint) else Literal[choices]
    if is_record(kind):
        return within(kind) if within else Any
    if get_origin(kind) is tuple:
        return Annotated[tuple[plain(get_args(kind)[0], within), ...], limits]  # type: ignore[misc]
    others = _without_null(kind)
    return Union[tuple(plain(one, within) for one in others)] if len(others) > 1 else hint  # noqa: UP007


def bare(hint: Any) -> Any:
    """Return the type behind annotations and a possible null."""
    return _bare(hint)[0]


def _bare(hint: Any, limits: msgspec.Meta = _ANY) -> tuple[Any, msgspec.Meta]:
    """Return the type behind annotations and a possible null, and its range and words."""
    if get_origin(hint) is Annotated:
        inner, *metas = get_args(hint)
        return _bare(
            inner, reduce(_both, (m for m in metas if isinstance(m, msgspec.Meta)), limits)
        )
    others = _without_null(hint)
    return (
        _bare(others[0], limits) if len(others) == 1 and others[0] is not hint else (hint, limits)
    )


def _both(inner: msgspec.Meta, outer: msgspec.Meta) -> msgspec.Meta:
    """Return what two annotations of one type say; the outer one where both say something."""
    if inner is _ANY:
        return outer
    said = {name: getattr(inner, name) for name in _SAYS} | {
        name: value for name in _SAYS if (value := getattr(outer, name)) is not None
    }
    extra = (inner.extra or {}) | {key: one for key, one in (outer.extra or {}).items() if one}
    return msgspec.Meta(extra=extra, **said)


def _may_be_null(hint: Any) -> bool:
    return NoneType in get_args(get_args(hint)[0] if get_origin(hint) is Annotated else hint)


def _without_null(hint: Any) -> list[Any]:
    """Return the members of a union besides null; a type that is no union alone."""
    if get_origin(hint) not in (Union, UnionType):
        return [hint]
    return [one for one in get_args(hint) if one is not NoneType]


def problems(hint: Any, value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Yield (path, problem) for whatever in a value is not of a type, in the order of the value."""
    if value is None and _may_be_null(hint):
        return
    kind, limits = _bare(hint)
    others = _without_null(kind)
    if len(others) > 1:
        if all(any(True for _ in problems(one, value)) for one in others):
            yield path, f"must be {' or '.join(map(expected, others))} (got {shown(value)})"
    elif get_origin(kind) in (tuple, list):
        if not isinstance(value, list | tuple):
            yield path, f"must be a list in brackets (got {shown(value)})"
            return
        if problem := _wrong_length(limits, value):
            yield path, problem
            return
        for i, one in enumerate(value):
            yield from problems(get_args(kind)[0], one, f"{path}[{i}]")
    elif is_record(kind):
        if not isinstance(value, kind):  # one that is made has checked itself
            inner = wrong_values(kind, value)
            yield from ((f"{path}.{field}" if field else path, why) for field, why in inner)
    elif problem := _problem(kind, limits, value):
        yield path, problem


def is_record(kind: object) -> bool:
    """Return whether a type is a record with fields of its own."""
    return isinstance(kind, type) and (
        dataclasses.is_dataclass(kind) or issubclass(kind, msgspec.Struct)
    )


def wrong_values(
    kind: type, values: object, must: Collection[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for whatever in an object of a file does not make a record of a kind.

    Keys that are missing or unknown come first, and alone.

    Parameters
    ----------
    must
        The keys that may not be missing, where that is not up to the record.
    """
    if not isinstance(values, Mapping):
        yield "", f"must be an object in braces (got {shown(values)})"
        return
    fields = {one.key: one for one in fields_of(kind).values()}
    unknown_keys = [key for key in values if key not in fields]
    required = [key for key, one in fields.items() if one.required] if must is None else must
    strange = [key for key in required if key not in values]
    yield from ((printable(key), unknown(key, fields)) for key in unknown_keys)
    yield from ((key, "is missing") for key in strange)
    if not strange and not unknown_keys:
        for key, value in values.items():
            yield from problems(fields[key].hint, value, key)


def expected(hint: Any) -> str:
    """Say what a value of a type is: ``a number above 0``, ``auto, slot``."""
    kind, limits = _bare(hint)
    if choices := _choices(kind, limits):
        return ", ".join(map(str, choices))
    words = {int: "a whole number", float: "a number", str: "text in quotes", bool: "true or false"}
    return f"{words.get(kind, 'an object in braces')} {_span(limits)}".rstrip()


def _span(limits: msgspec.Meta) -> str:
    least, above, most = limits.ge, limits.gt, limits.le
    if least is not None and most is not None and (least > 0 or isinstance(most, int)):
        return f"from {_shortly(least)} to {_shortly(most)}"
    low = f"of at least {_shortly(least)}" if least is not None else ""
    low = f"above {_shortly(above)}" if above is not None else low
    high = f"at most {_shortly(most)}" if most is not None else ""
    return ", ".join(filter(None, (low, high if low else high and f"of {high}")))


def _shortly(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:g}"


def _wrong_length(limits: msgspec.Meta, value: Sequence[Any]) -> str:
    least, most = limits.min_length or 0, limits.max_length
    if len(value) >= least and (most is None or len(value) <= most):
        return ""
    span = f"at least {least:,}" if most is None else f"{least:,} to {most:,}"
    return f"must have {span} entries (got {len(value):,})"


def _problem(kind: Any, limits: msgspec.Meta, value: Any) -> str:
    if choices := _choices(kind, limits):
        if kind is int and type(value) is not int:
            return _wrong_whole(limits, value)
        known = isinstance(value, str | int) and value in choices
        words = ", ".join(map(str, choices))
        return "" if known else f"must be one of {words} (got {shown(value)})"
    if kind is bool:
        return "" if isinstance(value, bool) else f"must be true or false (got {shown(value)})"
    if kind in _WRONG:
        return _WRONG[kind](limits, value)
    if get_origin(kind) in (dict, Mapping) and not isinstance(value, Mapping):
        return f"must be an object in braces (got {shown(value)})"
    return ""  # a record within a record checks itself


def _wrong_whole(limits: msgspec.Meta, value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        return f"must be a whole number without a decimal point (got {value})"
    if type(value) is not int:
        return f"must be a whole number (got {shown(value)})"
    return _out_of_range(limits, value)


def _wrong_number(limits: msgspec.Meta, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return f"must be a number (got {shown(value)})"
    if isinstance(value, int) and value.bit_length() > MAX_BITS:
        return f"must be a number (got {shown(value)})"
    if not math.isfinite(value):
        return f"must be a finite number (got {value})"
    return _out_of_range(limits, value)


def _out_of_range(limits: msgspec.Meta, value: float) -> str:
    least, above, most = limits.ge, limits.gt, limits.le
    span = _span(limits)
    if above is not None and value <= above:
        span = f"greater than {_shortly(above)}"
    elif least is not None and value < least:
        span = span if span.startswith("from") else f"at least {_shortly(least)}"
    elif most is None or value <= most:
        return ""
    else:
        span = span if span.startswith("from") else f"at most {_shortly(most)}"
    return f"must be {span} (got {shown(value)})"


def is_text(text: str, without: str) -> bool:
    """Return whether text is printable, and without the spaces that it must be without."""
    if not text.isprintable():
        return False
    if without == WITHOUT_SPACES:
        return " " not in text
    return without != WITHOUT_OUTER_SPACES or text == text.strip()


def _wrong_text(limits: msgspec.Meta, value: Any) -> str:
    if not isinstance(value, str):
        return f"must be text in quotes (got {shown(value)})"
    least, most = limits.min_length or 0, limits.max_length
    if limits.pattern is not None and not re.search(limits.pattern, value):
        return f"must be {(limits.extra or {}).get('like') or limits.pattern} (got {shown(value)})"
    without = (limits.extra or {}).get("without", "")
    # Blank counts as nothing.
    right = least <= (len(value) if value.strip() else 0) and (most is None or len(value) <= most)
    if right and (not without or is_text(value, without)):
        return ""
    span = f"at least {least}"
    if most is not None:
        span = f"{least} to {most:,}" if least else f"at most {most:,}"
    if without in ("", PRINTABLE):
        printed = "printable " * bool(without)
        return f"must be {printed}text of {span} characters (got {shown(value)})"
    return f"must be {span} printable characters without {without} (got {shown(value)})"


_WRONG = {int: _wrong_whole, float: _wrong_number, str: _wrong_text}
