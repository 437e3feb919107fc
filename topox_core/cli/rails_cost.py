"""``rails cost``: cost and power of six networks for a number of GPUs, and their savings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topox_core.cli.command import Answer, Arguments, command
from topox_core.cli.files import read
from topox_core.cli.options import (
    JSON,
    Group,
    Option,
    errors_of_option,
    number,
    whole,
    wrong_option,
)
from topox_core.cli.printing import percent, table
from topox_core.io.json import record_of

if TYPE_CHECKING:
    from topox_core.economics.comparison import Year
    from topox_core.economics.networks import Bill
    from topox_core.economics.parts import Catalogue


@command(
    "cost",
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
        "optical-switch ports per GPU of photonic rails (default 2)",
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
    flags={"ocs_transceivers_per_gpu": "--transceivers-per-gpu"},
)
def run(options: Arguments) -> Answer:
    """Price the networks."""
    from topox_core.economics.comparison import Question, Running, caveats_of, year_of
    from topox_core.economics.networks import NETWORKS, Counting, bills, saving, savings

    catalogue = _catalogue(options)
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
    years = {name: year_of(one, running) for name, one in priced.items()}
    record = {
        "gpus": question.gpus,
        "gpus_per_server": counting.gpus_per_server,
        "counting": counting.method,
        "prices": catalogue.name,
        "fabrics": {name: _record(one, years[name]) for name, one in priced.items()},
        "savings": savings(priced),
        "findings": caveats,
    }
    mine = priced["photonic_rails"]
    rows = (
        (
            NETWORKS[name],
            f"${one.cost_usd:,.0f}",
            f"{one.power_w / 1000:,.2f} kW",
            f"${one.cost_usd / one.gpus:,.0f}",
            f"${years[name].total_usd:,.0f}",
            "" if one is mine else percent(round(saving(mine.cost_usd, one.cost_usd), 6)),
            "" if one is mine else percent(round(saving(mine.power_w, one.power_w), 6)),
        )
        for name, one in priced.items()
    )
    head = ("network", "cost", "power", "a GPU", "a year", "photonic saves", "its power saves")
    words = (
        f"{question.gpus:,} GPUs, {counting.gpus_per_server} a server; {catalogue.name}; "
        f"counted by {counting.method}"
    )
    return Answer(record, (table(head, *rows), words, *caveats))


def _record(one: Bill, year: Year) -> dict[str, Any]:
    return {
        "cost_usd": one.cost_usd,
        "power_w": one.power_w,
        "cost_per_gpu_usd": one.cost_usd / one.gpus,
        "year_usd": year.total_usd,
        "year_kwh": year.energy_kwh,
        "parts": [record_of(line, "part count unit_usd cost_usd power_w") for line in one.lines],
    }


def _switch(radix: int | None) -> tuple[int, str]:
    """Return ports and name of the optical switch; by default the widest that switches in a job."""
    from topox_core.rails.technologies import TECHNOLOGIES

    if radix is not None:
        return radix, "the optical switch"
    widest = max(
        (one for one in TECHNOLOGIES if one.reconfiguration_ms <= 1000), key=lambda one: one.radix
    )
    return widest.radix, f"{widest.vendor}, the widest that switches within a second,"


def _catalogue(options: Arguments) -> Catalogue:
    from topox_core.economics.parts_file import load_parts
    from topox_core.economics.price_sets import DEFAULT_SET, price_set

    if options.parts is not None:
        if options.prices is not None:
            raise wrong_option(
                "--parts",
                "cannot be given with --prices: a parts file says itself which set it is based on",
            )
        return load_parts(read(options.parts), options.parts)
    with errors_of_option("--prices"):
        return price_set(options.prices or DEFAULT_SET)
