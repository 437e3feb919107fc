"""Strategies from and to files: ``*.strategy.json``, format ``topox-strategy`` version 1."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from topox_core.errors import InputError
from topox_core.io.errors import printable
from topox_core.io.json import Location, file_body, read_record
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.plans import ParallelPlan
from topox_core.strategy.strategy import Placement, Strategy, check_placement

FORMAT = "topox-strategy"
VERSION = 1
_MAX_NAME = 200
_Text = Annotated[str, Field(min_length=1, max_length=_MAX_NAME)]


class PlacementRecord(BaseModel):
    """One operator's configuration as the file has it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    operator: _Text
    partitions: int
    start: int = 0


class PlanRecord(BaseModel):
    """A transformer's parallel plan as the file has it."""

    model_config = ConfigDict(extra="forbid", strict=True)

    tensor: int
    pipeline: int
    data: int
    context: int = 1
    expert: int = 1
    microbatches: int
    microbatch_size: int
    recompute: bool = False


class StrategyRecord(BaseModel):
    """The whole file; either operators or a plan."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: _Text
    servers: int
    operators: list[PlacementRecord] | None = None
    plan: PlanRecord | None = None


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
    if record.operators is None:
        raise InputError(
            "is missing (a file with a plan is for transformers)", file=file, field="operators"
        )
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


def load_plan(data: bytes, file: str) -> tuple[str, int, ParallelPlan]:
    """Read a transformer's plan: model, servers, plan.

    Raises
    ------
    InputError
        If the file cannot be used.
    """
    record = _read(data, file)
    if record.plan is None:
        raise InputError(
            "is missing (a file with operators is for operator models)", file=file, field="plan"
        )
    return record.model, record.servers, ParallelPlan(**record.plan.model_dump())


def dump_strategy(strategy: Strategy) -> bytes:
    """Write a strategy, one operator a line; reading it back gives an equal one."""
    lines = [json.dumps(asdict(p), ensure_ascii=False) for p in strategy.placements]
    return (
        _head(strategy.model, strategy.servers)
        + ' "operators": [\n  '
        + ",\n  ".join(lines)
        + "\n ]}\n"
    ).encode()


def dump_plan(model: str, servers: int, plan: ParallelPlan) -> bytes:
    """Write a transformer's plan; reading it back gives an equal one."""
    return (_head(model, servers) + f' "plan": {json.dumps(plan.as_record())}}}\n').encode()


def _head(model: str, servers: int) -> str:
    named = json.dumps(model, ensure_ascii=False)
    return (
        f'{{"format": "{FORMAT}", "version": {VERSION}, "model": {named}, "servers": {servers},\n'
    )


def _read(data: bytes, file: str) -> StrategyRecord:
    file = printable(file, _MAX_NAME) if file else "strategy"
    body = file_body(data, file, FORMAT, VERSION)
    values = read_record(
        StrategyRecord, body, file, lambda at: (_item(body, at), printable(str(at[-1])), _known(at))
    )
    if values.operators is not None and values.plan is not None:
        raise InputError(
            "must not stand beside operators: give one of the two", file=file, field="plan"
        )
    if values.servers < 1:
        raise InputError(f"must be at least 1 (got {values.servers})", file=file, field="servers")
    return values


def _known(loc: Location) -> list[str]:
    kind: dict[Any, type[BaseModel]] = {"operators": PlacementRecord, "plan": PlanRecord}
    return list(kind.get(loc[0] if len(loc) > 1 else "", StrategyRecord).model_fields)


def _item(body: dict[str, Any], loc: Location) -> str:
    if len(loc) < 2 or loc[0] != "operators" or not isinstance(loc[1], int):
        return str(loc[0]) if len(loc) > 1 else ""
    entries = body.get("operators")
    entry = entries[loc[1]] if isinstance(entries, list) and loc[1] < len(entries) else None
    name = entry.get("operator") if isinstance(entry, dict) else None
    return (
        f"operator {printable(name)}" if isinstance(name, str) and name else f"entry {loc[1] + 1}"
    )
