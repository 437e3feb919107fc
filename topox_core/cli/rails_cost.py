"""``rails cost``: cost and power of six networks for a number of GPUs, and their savings."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from topox_core.cli import options as given
from topox_core.cli.files import read
from topox_core.cli.options import JSON, Group, Option, number, whole, wrong_option
from topox_core.cli.printing import percent, show, table
from topox_core.errors import InputError
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.economics.comparison import Question, Running
    from topox_core.economics.networks import Bill
    from topox_core.economics.parts import Catalogue

# Options of settings that are called otherwise.
_FLAGS = {"ocs_transceivers_per_gpu": "--transceivers-per-gpu"}


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Add the command to those of ``rails``."""
    given.add_command(
        commands,
        "cost",
        run,
        "price and power of six networks for a number of GPUs",
        "Count and price a fat-tree, rail-optimised, rail-only and photonic rails, and TopoOpt with a patch panel or "
        "optical switches, for a number of GPUs.",
        Option("--gpus N", whole, "GPUs, in whole servers", required=True),
        Option("--gpus-per-server N", whole, "GPUs of one server (default 8)", 8),
        Option(
            "--counting paper|whole-switches",
            str,
            "fractional radix as published (default), or switches bought whole",
            "paper",
        ),
        Option(
            "--prices SET", str, "price set: opus-v1 (default), mixnet, opus-v3-h200, opus-v3-gb200"
        ),
        Option("--parts FILE", str, "prices and watts of your own: .parts.json"),
        Option("--nics", bool, "count NICs"),
        Option("--fibre", bool, "count fibre"),
        Option(
            "--ocs-ports-per-gpu N",
            whole,
            "optical-switch ports a GPU of photonic rails (default 2)",
            2,
        ),
        Option(
            "--transceivers-per-gpu N",
            whole,
            "transceivers a GPU of the optical networks (default 1)",
            1,
        ),
        Option("--joined-rails", bool, "with whole switches: a spine over the rails"),
        Option(
            "--radix N",
            whole,
            "ports of the optical switch, which say whether photonic rails can be built of it (default: 576, "
            "the widest of those that switch within a second)",
        ),
        Group(
            "a year (assumed figures)",
            (
                Option("--usd-per-kwh X", number, "price of electricity (default 0.10)", 0.10),
                Option("--pue X", number, "building watts a watt in it (default 1.3)", 1.3),
                Option("--years X", number, "written off over (default 4)", 4.0),
            ),
        ),
        JSON,
    )


def run(options: argparse.Namespace) -> int:
    """Price the networks and print them."""
    from topox_core.economics.comparison import Question, Running, caveats_of
    from topox_core.economics.networks import Counting, bills

    catalogue = _catalogue(options)
    with given.settings_as_options(options, _FLAGS):
        counting = Counting(
            options.gpus_per_server,
            options.counting,
            options.nics,
            options.fibre,
            ocs_ports_per_gpu=options.ocs_ports_per_gpu,
            ocs_transceivers_per_gpu=options.transceivers_per_gpu,
            joined_rails=options.joined_rails,
        )
        running = Running(options.usd_per_kwh, options.pue, options.years)
        question = Question(options.gpus, catalogue, counting)
        priced = bills(options.gpus, catalogue, counting)
        caveats = [one.text for one in caveats_of(question, *_switch(options.radix))]
    return show(
        options,
        _record(question, priced, running, caveats),
        lambda: _print(question, priced, running, caveats),
    )


def _switch(radix: int | None) -> tuple[int, str]:
    """Return ports and name of the optical switch; by default the widest that switches in a job."""
    from topox_core.rails.technologies import TECHNOLOGIES

    if radix is not None:
        return radix, "the optical switch"
    widest = max(
        (one for one in TECHNOLOGIES if one.reconfiguration_ms <= 1000), key=lambda one: one.radix
    )
    return widest.radix, f"{widest.vendor}, the widest that switches within a second,"


def _catalogue(options: argparse.Namespace) -> Catalogue:
    from topox_core.economics.parts_file import load_parts
    from topox_core.economics.price_sets import DEFAULT_SET, price_set

    if options.parts is not None:
        if options.prices is not None:
            raise wrong_option(
                "--parts",
                "cannot be given with --prices: a parts file says itself which set it is based on",
            )
        return load_parts(read(options.parts), options.parts)
    try:
        return price_set(options.prices or DEFAULT_SET)
    except InputError as error:
        raise wrong_option("--prices", error.problem) from None


def _record(
    question: Question, priced: dict[str, Bill], running: Running, caveats: list[str]
) -> dict[str, Any]:
    from topox_core.economics.comparison import year_of
    from topox_core.economics.networks import savings

    fabrics = {}
    for name, one in priced.items():
        year = year_of(one, running)
        fabrics[name] = {
            "cost_usd": one.cost_usd,
            "power_w": one.power_w,
            "cost_per_gpu_usd": one.cost_usd / one.gpus,
            "year_usd": year.total_usd,
            "year_kwh": year.energy_kwh,
            "parts": [
                record_of(line, "part count unit_usd cost_usd power_w") for line in one.lines
            ],
        }
    return {
        "gpus": question.gpus,
        "gpus_per_server": question.counting.gpus_per_server,
        "counting": question.counting.method,
        "prices": question.catalogue.name,
        "fabrics": fabrics,
        "savings": savings(priced),
        "findings": caveats,
    }


def _print(
    question: Question, priced: dict[str, Bill], running: Running, caveats: list[str]
) -> None:
    from topox_core.economics.comparison import year_of
    from topox_core.economics.networks import NETWORKS, saving

    mine = priced["photonic_rails"]
    rows: list[tuple[str, ...]] = [
        ("network", "cost", "power", "a GPU", "a year", "photonic saves", "its power saves")
    ]
    for name, one in priced.items():
        shares = (
            ("", "")
            if one is mine
            else (
                percent(round(saving(mine.cost_usd, one.cost_usd), 6)),
                percent(round(saving(mine.power_w, one.power_w), 6)),
            )
        )
        rows.append(
            (
                NETWORKS[name],
                f"${one.cost_usd:,.0f}",
                f"{one.power_w / 1000:,.2f} kW",
                f"${one.cost_usd / one.gpus:,.0f}",
                f"${year_of(one, running).total_usd:,.0f}",
                *shares,
            )
        )
    table(*rows)
    counting = question.counting
    print(
        f"{question.gpus:,} GPUs, {counting.gpus_per_server} a server; {question.catalogue.name}; counted by {counting.method}"
    )
    for line in caveats:
        print(line)
