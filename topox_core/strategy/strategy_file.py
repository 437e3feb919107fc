"""Strategies from and to files: ``*.strategy.json``, format ``topox-strategy`` version 1."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from topox_core.errors import InputError, printable
from topox_core.io.json import FileFormat, count_of, named, read_object, read_record
from topox_core.io.limits import STRATEGY
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import Placement, Strategy, check_placement

FORMAT = "topox-strategy"
VERSION = 1
_MAX_NAME = 200
_FORM = FileFormat(FORMAT, VERSION, ("model", "servers", "operators", "plan"), STRATEGY)
_Text = Annotated[str, Field(min_length=1, max_length=_MAX_NAME)]


class PlacementRecord(BaseModel):
    """One operator's configuration as the file has it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    operator: _Text
    partitions: int
    start: int = 0


class HeadRecord(BaseModel):
    """What every file has besides its operators."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: _Text
    servers: int


@dataclass(frozen=True)
class _Read:
    """The whole file."""

    model: str
    servers: int
    operators: tuple[PlacementRecord, ...]


def load_strategy(data: bytes, file: str, graph: OperatorGraph | None = None) -> Strategy:
    """Read a strategy; it may configure some of the operators only, to fix those in a search.

    Parameters
    ----------
    graph
        The model it is for; if given, every operator is checked against it.

    Raises
    ------
    InputError
        If the file cannot be used; file, operator and key are named.
    """
    record = _read(data, file)
    placements = tuple(
        Placement(entry.operator, entry.partitions, entry.start) for entry in record.operators
    )
    if graph is not None:
        if record.model != graph.name:
            raise InputError(
                f"must be {graph.name} (got {printable(record.model)})", file=file, field="model"
            )
        seen: set[str] = set()
        for placement in placements:
            check_placement(placement, graph, record.servers, file)
            if placement.operator in seen:
                raise InputError(
                    "is configured twice", file=file, item=f"operator {placement.operator}"
                )
            seen.add(placement.operator)
        order = graph.position
        placements = tuple(sorted(placements, key=lambda placement: order[placement.operator]))
    return Strategy(record.model, record.servers, placements)


def dump_strategy(strategy: Strategy) -> bytes:
    """Write a strategy, one operator a line; reading it back gives an equal one."""
    lines = [json.dumps(asdict(p), ensure_ascii=False) for p in strategy.placements]
    return (
        _head(strategy.model, strategy.servers)
        + ' "operators": [\n  '
        + ",\n  ".join(lines)
        + "\n ]}\n"
    ).encode()


def _head(model: str, servers: int) -> str:
    named = json.dumps(model, ensure_ascii=False)
    return (
        f'{{"format": "{FORMAT}", "version": {VERSION}, "model": {named}, "servers": {servers},\n'
    )


def _read(data: bytes, file: str) -> _Read:
    file = printable(file, _MAX_NAME) if file else "strategy"
    operators: list[PlacementRecord] = []

    def take(number: int, entry: Any) -> None:
        item = named(entry, "operator", "operator", number)
        operators.append(read_record(PlacementRecord, entry, file, item))

    body = read_object(data, file, _FORM, {"operators": take})
    if body.get("plan") is not None:
        problem = "is no longer read here: rank the plans anew and keep one as a job (*.job.json)"
        raise InputError(problem, file=file, field="plan")
    head = {key: body[key] for key in ("model", "servers") if key in body}
    values = read_record(HeadRecord, head, file)
    if body.get("operators") is None:
        raise InputError("is missing", file=file, field="operators")
    count_of(body, "operators", "operators", file)
    if values.servers < 1:
        raise InputError(f"must be at least 1 (got {values.servers})", file=file, field="servers")
    return _Read(values.model, values.servers, tuple(operators))
