"""Strategies from and to files: ``*.strategy.json``, format ``topox-strategy`` version 1."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

from topox_core.errors import InputError, printable
from topox_core.io.json import FileFormat, count_of, named, read_object, without_header
from topox_core.io.limits import STRATEGY
from topox_core.schema.records import check_values, from_values
from topox_core.strategy.operators import OperatorGraph
from topox_core.strategy.strategy import MAX_NAME, Placement, Strategy, check_placement

FORMAT = "topox-strategy"
VERSION = 1
_FORM = FileFormat(FORMAT, VERSION, ("model", "servers", "operators", "plan"), STRATEGY)


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
    strategy = _read(data, file)
    placements = strategy.placements
    if graph is not None:
        if strategy.model != graph.name:
            raise InputError(
                f"must be {graph.name} (got {printable(strategy.model)})", file=file, field="model"
            )
        seen: set[str] = set()
        for placement in placements:
            check_placement(placement, graph, strategy.servers, file)
            if placement.operator in seen:
                raise InputError(
                    "is configured twice", file=file, item=f"operator {placement.operator}"
                )
            seen.add(placement.operator)
        order = graph.position
        placements = tuple(sorted(placements, key=lambda placement: order[placement.operator]))
    return replace(strategy, placements=placements)


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


def _read(data: bytes, file: str) -> Strategy:
    file = printable(file, MAX_NAME) if file else "strategy"
    placements: list[Placement] = []

    def take(number: int, entry: Any) -> None:
        item = named(entry, "operator", "operator", number)
        placements.append(from_values(Placement, entry, file, item))

    body = read_object(data, file, _FORM, {"operators": take})
    if body.get("plan") is not None:
        problem = "is no longer read here: rank the plans anew and keep one as a job (*.job.json)"
        raise InputError(problem, file=file, field="plan")
    check_values(
        Strategy, without_header(body, "operators", "plan"), file, must=("model", "servers")
    )
    if body.get("operators") is None:
        raise InputError("is missing", file=file, field="operators")
    count_of(body, "operators", "operators", file)
    return Strategy(body["model"], body["servers"], tuple(placements))
