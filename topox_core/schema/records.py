"""Records checked against what their fields say, and made of values that come from outside."""

from collections.abc import Collection, Iterator, Mapping
from functools import cache
from math import isfinite
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec.structs import force_setattr

from topox_core.errors import InputError
from topox_core.schema.fields import bare, fields_of, is_record, plain, problems, wrong_values

T = TypeVar("T")


def check_fields(record: Any, file: str = "", item: str = "") -> None:
    """Check every field of a new record; whole numbers given for real ones become real.

    Called by ``__post_init__`` of a frozen record, which then checks what one field cannot say.

    Raises
    ------
    InputError
        For the first field that is not as it says.
    """
    kind: type = type(record)
    fields = fields_of(kind)
    values = {name: getattr(record, name) for name in fields}
    if not _fits(kind, values):
        for path, problem in wrong_fields(record):
            raise InputError(problem, file=file, item=item, field=path)
    put = force_setattr if isinstance(record, msgspec.Struct) else object.__setattr__
    for name, value in values.items():
        if type(value) is int and fields[name].kind is float:
            # 40 and 40.0 are one value, with one digest.
            put(record, name, float(value))


def _fits(record: type, values: Mapping[str, Any]) -> bool:
    """Return whether values are as the fields say, in a few microseconds; False if it takes a closer look."""
    try:
        msgspec.convert(values, _mirror(record))
    except msgspec.ValidationError:
        return False
    return all(
        isfinite(one)
        if isinstance(one, float)
        else not isinstance(one, str) or (one.isprintable() and (not one or one.strip()))
        for one in values.values()
    )


@cache
def _mirror(record: type) -> type[msgspec.Struct]:
    """Return a Struct with the fields of a record; records within it are taken as they are."""
    hints = [(name, plain(one.hint)) for name, one in fields_of(record).items()]
    return msgspec.defstruct(record.__name__, hints)


def wrong_fields(record: Any) -> Iterator[tuple[str, str]]:
    """Yield (field, problem) for whatever in a record is not as its fields say."""
    for name, field in fields_of(type(record)).items():  # type: ignore[arg-type]
        yield from problems(field.hint, getattr(record, name), name)


def check_value(hint: Any, value: object, **place: str) -> None:
    """Refuse what is not of a type.

    Parameters
    ----------
    **place
        Its ``file``, ``item`` and ``field``.

    Raises
    ------
    InputError
        If it is not.
    """
    for _, problem in problems(hint, value):
        raise InputError(problem, **place)


def check_values(
    kind: type, values: object, file: str, item: str = "", must: Collection[str] | None = None
) -> None:
    """Check an object of a file against the fields of a record.

    Parameters
    ----------
    item
        What errors call the object; empty for the file as a whole.
    must
        The keys that may not be missing, where that is not up to the record.

    Raises
    ------
    InputError
        For the first thing that is wrong; file, item and field are named.
    """
    for field, problem in wrong_values(kind, values, must):
        raise InputError(problem, file=file, item=item, field=field)


def from_values(kind: type[T], values: object, file: str, item: str = "", **made: Any) -> T:
    """Return an object of a file as a record of a kind.

    Parameters
    ----------
    **made
        Fields of the record that are made already.

    Raises
    ------
    InputError
        For the first thing that is wrong; file, item and field are named.
    """
    must = [
        one.key
        for name, one in fields_of(cast("type", kind)).items()
        if one.required and name not in made
    ]
    check_values(kind, values, file, item, must)
    try:
        return kind(**_fields_made(kind, cast("Any", values)), **made)
    except InputError as error:
        raise InputError(
            error.problem, file=file, item=error.item or item, field=error.field
        ) from None


def _fields_made(kind: type, values: Mapping[str, Any]) -> dict[str, Any]:
    fields = {one.key: one for one in fields_of(kind).values()}
    return {fields[key].name: _made(fields[key].hint, one) for key, one in values.items()}


def _made(hint: Any, value: Any) -> Any:
    """Return a value that fits a type as that type has it: lists as tuples, objects as records."""
    kind = bare(hint)
    if is_record(kind) and isinstance(value, Mapping):
        return kind(**_fields_made(kind, value))
    if isinstance(value, list) and get_origin(kind) is tuple:
        return tuple(_made(get_args(kind)[0], one) for one in value)
    return float(value) if kind is float and type(value) is int else value
