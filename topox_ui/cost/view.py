"""Cost: what photonic rails and their rivals cost and burn, by size, by year, part by part, and per iteration."""

import math
from collections.abc import Mapping
from contextlib import suppress
from functools import partial

import streamlit as st

from topox_core.economics.clusters import CLUSTER_NETWORKS, cluster_bill
from topox_core.economics.comparison import (
    IterationCost,
    Question,
    curves,
    most_gpus,
    sizes_up_to,
    year_of,
)
from topox_core.economics.networks import LINE_NAMES, NETWORK_RECORDS, NETWORKS, Bill
from topox_core.economics.price_sets import SET_BY_SPEED
from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import EQUAL, fabric_bill, same_time
from topox_core.fabrics.comparison.words import FULL, PATCH_PANEL, YARDSTICK
from topox_core.fabrics.registry import ENTRIES
from topox_core.fabrics.run import JobRequest
from topox_core.figures.networks.cost import SHORT_PARTS, by_size, worth, yearly
from topox_core.figures.palette import Theme
from topox_core.text.numbers import (
    NBSP,
    at_delay,
    capitalised,
    count,
    energy,
    enumeration,
    large,
    money,
    plural,
    power,
    short,
    time,
    whole_percent,
)
from topox_ui.answers.contest import (
    Contest,
    Runs,
    contest_of,
    redraw_when_shorter,
    run_all,
)
from topox_ui.answers.keeping import kept_of
from topox_ui.answers.solving import job_of
from topox_ui.answers.verdicts import verdict_line
from topox_ui.cost.controls import (
    LARGEST,
    CostState,
    controls,
    parts_table,
    price_controls,
    question,
    radix,
)
from topox_ui.cost.headline import (
    cost_headline,
    costs_now,
    hangs_on,
    main_figures,
    notes,
    slower_than_counted,
    totals_words,
    warnings,
    worth_of_a_port,
)
from topox_ui.cost.switches import BuyingState
from topox_ui.runs.owner import run_owner
from topox_ui.shell.charts import (
    beside,
    chart,
    chart_title,
    escape,
    frame,
    headline,
    quiet,
    show_input_errors,
    title_row,
)
from topox_ui.shell.downloads import graph_kept_here, link_menu
from topox_ui.state.loading import (
    Loaded,
    cluster_words,
    loaded,
    opened_by_itself,
    own_job,
    scenario,
    setting_words,
)
from topox_ui.state.prices import catalogue
from topox_ui.state.session import Lasting
from topox_ui.state.widgets import menu

SIX = (
    "Six ways to join the same GPUs. Packet switches: a fat-tree; rail-optimised, where GPUs of one position share a switch under "
    "a spine; rail only, without the spine. TopoOpt: circuits fixed for a job, on a patch panel or an optical circuit switch (OCS). "
    "Photonic rails: optical circuits that change during the job."
)
_LISTS_ALL = ", which has every port speed"
# Beside the winner the first sentence has the plan, and the best fixed circuits and fat-tree.
TOLD = ("scheduled", PATCH_PANEL, "fat_tree")
# A full fat-tree whose hosts send in an order, which takes at most as long as the ideal switch: no fabric of its own.
IN_ORDER = "in_order"
MAX_TASKS = 2_500  # a larger graph waits for a button
# The large graph whose prices the reader asked for.
_ASKED_FOR = Lasting[str]("priced_for")


def size_and_year(question: Question, priced: dict[str, Bill], theme: Theme) -> None:
    """Draw cost and power per GPU against cluster size, and a year's bill."""
    each = question.counting.gpus_per_server
    sizes = sizes_up_to(max(LARGEST, question.gpus), each, (question.gpus,))
    lines = curves(question, sizes)
    limit = most_gpus(question, radix()[0])
    measure = CostState.now().measure
    running = CostState.now().running
    years = {name: year_of(one, running) for name, one in priced.items()}
    beside(
        2,
        partial(
            chart,
            by_size(lines, measure, question.gpus, theme, limit),
            "by_size",
            f"{measure.capitalize()} per GPU by cluster size. At {count(question.gpus)} GPUs: "
            f"{totals_words(priced, measure, per_gpu=True)}",
            lambda: [
                {
                    "GPUs": int(one.gpus),
                    "network": NETWORKS[name],
                    "cost ($)": one.cost_usd,
                    "power (W)": one.power_w,
                }
                for name, several in lines.items()
                for one in several
            ],
            "In numbers",
            title=(
                f"{measure.capitalize()} per GPU, by cluster size",
                f"logarithmic; photonic rails dotted beyond {count(limit)} GPUs: too few ports on a {escape(radix()[1])} switch",
            ),
        ),
        partial(
            chart,
            yearly(years, theme),
            "yearly",
            "Dollars per year: "
            + "; ".join(
                f"{NETWORKS[name]} {money(year.total_usd)}, {energy(year.energy_kwh)}"
                for name, year in years.items()
            ),
            lambda: [
                {
                    "network": NETWORKS[name],
                    "purchase ($ per year)": year.purchase_usd,
                    "electricity ($ per year)": year.electricity_usd,
                    "energy (kWh per year)": year.energy_kwh,
                    "all ($ per year)": year.total_usd,
                }
                for name, year in years.items()
            ],
            "In numbers",
            title=(
                "Cost per year",
                f"assumed: ${running.usd_per_kwh:.2f} per kWh, PUE {running.pue:g}, written off over "
                f"{running.years:g} years; change them in the sidebar",
            ),
        ),
    )


def materials(priced: dict[str, Bill]) -> None:
    """Draw the bill of materials of one network, and what all of them count beside it."""
    left, right = st.columns([1, 1.25], gap="medium")
    with left:
        one = priced[CostState.now().bill]
        [choice] = title_row(
            (1.5, 1),
            "Bill of materials",
            f"{NETWORKS[one.network]}: {money(one.cost_usd)}, {power(one.power_w)}",
        )
        menu(CostState, "bill", NETWORKS, label="Bill of", at=choice, label_visibility="collapsed")
        lines = [
            (LINE_NAMES[line.part], line.count, line.cost_usd, line.power_w, line.unit_usd)
            for line in one.lines
        ]
        rows = [*lines, ("all", None, one.cost_usd, one.power_w, None)]
        frame(
            [
                dict(zip(("Part", "Count", "Cost", "Watt", "Each"), row, strict=True))
                for row in rows
            ],
            column_config={
                "Count": st.column_config.NumberColumn(format="localized"),
                "Each": st.column_config.NumberColumn(format="dollar"),
                "Cost": st.column_config.NumberColumn(format="dollar"),
                "Watt": st.column_config.NumberColumn(format="localized"),
            },
        )
    with right:
        chart_title("Parts of all networks", "how many of each part every network needs")
        parts = [part for part in LINE_NAMES if any(bill.count(part) for bill in priced.values())]
        # Parts down, networks across: there are always six of these, and each more part is a row,
        # not a column.
        frame(
            [
                {
                    "Part": capitalised(ROWS[part]),
                    **{HEADS[name]: bill.count(part) or None for name, bill in priced.items()},
                }
                for part in parts
            ],
            column_config={
                HEADS[name]: st.column_config.NumberColumn(format="localized") for name in priced
            },
        )


# Over a column of a table, in one line.
HEADS = {
    name: one.short.replace("-\n", "-").replace("\n", " ") for name, one in NETWORK_RECORDS.items()
}
ROWS = {
    **LINE_NAMES,
    **SHORT_PARTS,
    "fibre_m": "fibre (m)",
    "one_by_two_switch": "1 x 2 switches",
}


def draw_per_iteration(theme: Theme, opened: Loaded) -> None:
    """Draw the view Per iteration: what an iteration of the loaded job costs on every fabric, and how many a dollar buys."""
    price_controls()
    title = f"Cost per iteration · {escape(opened.title)}"
    if len(opened.graph.tasks) > MAX_TASKS and _ASKED_FOR.get() != opened.graph.digest:
        headline(title, "This job is <b>large</b>: press the button to run it on the fabrics.")
        st.button(
            f"Run the fabrics on {plural(len(opened.graph.tasks), 'task')}",
            key="price_fabrics",
            on_click=lambda: _ASKED_FOR.set(opened.graph.digest),
        )
        return
    with show_input_errors(f"Cost per iteration · {opened.title}"):
        job = job_of(opened, scenario())
        contest = contest_of(job)
        runs, failed = run_all(job, contest)
        assumed = BuyingState.now()
        each = assumed.gpus_per_server or kept_of(opened, job).resolved.gpus_per_server
        gpu_usd_per_hour = job.cluster.servers * each * assumed.usd_per_gpu_hour
        costs = _costs(job, contest, runs, gpu_usd_per_hour)
    if run_owner().busy and "scheduled" in runs:
        redraw_when_shorter(job, runs["scheduled"])
    headline(
        f"{title} · {setting_words(job.cluster)}, ${assumed.usd_per_gpu_hour:g} per GPU and hour",
        _least(costs, contest.spoken, job.cluster.reconfiguration_ms),
    )
    verdict_line(job, runs["scheduled"].iteration_ms if "scheduled" in runs else None)
    worth_of_a_port(job, runs.get("scheduled"))
    for line in failed:
        quiet(f"{escape(line)}")
    labels = {**contest.labels, IN_ORDER: f"{contest.labels[FULL]}, in order"}
    usd = {name: f"{'≤ ' * (name == IN_ORDER)}${short(one.usd)}" for name, one in costs.items()}
    per_usd = {
        name: f"{'≥ ' * (name == IN_ORDER)}{large(one.per_usd)}" for name, one in costs.items()
    }
    by_worth = sorted(costs, key=lambda name: -costs[name].per_usd)
    beside(
        2,
        partial(
            chart,
            worth(
                [(_as_run(name), labels[name], one.usd, usd[name]) for name, one in costs.items()],
                "$ per iteration",
                theme,
                "$~r",
            ),
            "iteration_cost",
            "Dollars per iteration: " + "; ".join(f"{labels[name]} {usd[name]}" for name in costs),
            lambda: [{"fabric": labels[n], "$ per iteration": one.usd} for n, one in costs.items()],
            title=("Cost of an iteration", "GPU hours and network together; ≤: at most"),
        ),
        partial(
            chart,
            worth(
                [(_as_run(n), labels[n], costs[n].per_usd, per_usd[n]) for n in by_worth],
                "iterations per dollar",
                theme,
            ),
            "worth",
            "Iterations per dollar of network: "
            + "; ".join(f"{labels[name]} {per_usd[name]}" for name in by_worth),
            lambda: [
                {"fabric": labels[name], "iterations per dollar": costs[name].per_usd}
                for name in by_worth
            ],
            title=("Iterations per dollar of network", "the network alone, without GPU hours"),
        ),
    )
    frame(
        [
            {
                "Fabric": labels[name],
                "Cost": usd[name],
                "Iteration": f"{'≤ ' * (name == IN_ORDER)}{time(one.iteration_ms)}",
                "Network": money(one.bill.cost_usd),
                "Per dollar": per_usd[name],
                "Power": power(one.bill.power_w),
                "Priced as": CLUSTER_NETWORKS[one.bill.network],
            }
            for name, one in costs.items()
        ]
        + [
            {"Fabric": labels[name], "Iteration": time(run.iteration_ms)}
            | dict.fromkeys(("Cost", "Network", "Per dollar", "Power"), "–")
            | {"Priced as": "not for sale"}
            for name, run in runs.items()
            if name not in costs
        ]
    )
    prices = catalogue()
    every = _LISTS_ALL if prices.based_on == SET_BY_SPEED else ""
    quiet(
        f"{escape(cluster_words(job.cluster))}; NICs are counted, since their speed differs by network. Prices: "
        f"{escape(prices.name)}{every}; watts proportional to speed (assumed). A fat-tree has five switch ports and six "
        "transceivers per link, as TopoOpt counts. Fixed circuits are built on a patch panel, those that change on optical "
        "switches."
    )
    with suppress(InputError):  # a network that cannot be asked for has no price
        _fat_tree_prices(job, contest, costs)
    link_menu(graph_kept_here())


def _as_run(name: str) -> str:
    """Return as which fabric a network runs."""
    return FULL if name == IN_ORDER else name


def _costs(
    job: JobRequest, contest: Contest, runs: Runs, gpu_usd_per_hour: float
) -> dict[str, IterationCost]:
    """Return what an iteration costs on each network that can be bought, the cheapest first; raises InputError."""
    prices, running = catalogue(), CostState.now().running
    times = {name: run.iteration_ms for name, run in runs.items()}
    if times.get(YARDSTICK, math.inf) * (1 + EQUAL) < times.get(FULL, 0.0):
        times[IN_ORDER] = times[YARDSTICK]
    bills = {
        name: fabric_bill(_as_run(name), job.cluster, prices, contest.options) for name in times
    }
    costs = {
        name: IterationCost(times[name], bill, year_of(bill, running), gpu_usd_per_hour)
        for name, bill in bills.items()
        if bill is not None
    }
    return dict(sorted(costs.items(), key=lambda one: one[1].usd))


def _least(costs: Mapping[str, IterationCost], spoken: Mapping[str, str], delay_ms: float) -> str:
    """Return on which fabric an iteration costs least, what on the best of each kind, and what of that are GPU hours."""
    own = [name for name in costs if name != IN_ORDER]
    if not own:
        return "<b>No fabric that was chosen can be bought.</b> Choose others on Compare."
    names = {name: escape(spoken[name]) for name in own}
    if ordered := costs.get(IN_ORDER):
        names[FULL] += f" (at most ${short(ordered.usd)} where its hosts send in an order)"
    first = [name for name in own if same_time(costs[name].usd, costs[own[0]].usd)]
    # Of each kind the best; fabrics alike in kind are told apart by the table.
    kinds = {_kind(name): name for name in reversed(own)}
    told = [
        name for name in own[len(first) :] if name == kinds[_kind(name)] and _kind(name) in TOLD
    ]
    against = [f"${short(costs[name].usd)} on {names[name]}" for name in told]
    where = at_delay(delay_ms)
    words = (
        f"{where} an iteration costs <b>${short(costs[own[0]].usd)} on "
        f"{enumeration([names[name] for name in first], 'or')}</b>"
    )
    words += f", against {enumeration(against)}" if against else ""
    shares = sorted(costs[name].gpu_share for name in (*first, *told))
    ends = dict.fromkeys(map(whole_percent, (shares[0], shares[-1])))
    words += f". GPU hours are {' to '.join(ends)}{NBSP}% of the cost."
    if any(ENTRIES[name].pays_delay for name in (*first, *told)):
        words += slower_than_counted(delay_ms)
    return words


def _fat_tree_prices(job: JobRequest, contest: Contest, costs: Mapping[str, IterationCost]) -> None:
    """Write in one place why fat-trees have several prices on Cost; raises InputError."""
    asked, cluster = question(), job.cluster
    own = plural(cluster.servers * cluster.ports_per_server, "port")
    prices = [
        f"<b>{money(costs[name].bill.cost_usd)}</b> for {escape(contest.spoken[name])}{whose}"
        for name, whose in ((FULL, f" of the job's own {own}"), ("fat_tree", ""))
        if name in costs
    ]
    prices.append(
        f"on <em>Network</em> <b>{money(asked.bill('fat_tree').cost_usd)}</b> for {plural(asked.gpus, 'GPU')} with "
        f"{asked.catalogue.port_gbps:g}G each, NICs {'counted' if asked.counting.nics else 'left out'}"
    )
    quiet(f"Prices of fat-trees on Cost: {enumeration(prices)}.")


def _kind(name: str) -> str:
    """Return what a fabric is built as; planned circuits are a kind of their own."""
    return name if name == "scheduled" else ENTRIES[name].built_as


def _beside_the_job(question: Question, priced: dict[str, Bill]) -> None:
    """Say whose GPUs are counted, and what the other views of Cost price for the job that the reader chose."""
    opened, now = loaded(), CostState.now()
    if opened is None or opened_by_itself():
        return
    if own_job() and not now.gpus:
        quiet("As many GPUs as your job has; choose any number in the sidebar.")
    else:
        quiet(f"A network of {count(question.gpus)} GPUs, whichever job it runs.")
    cluster, tree = scenario().cluster(opened.cluster), money(priced["fat_tree"].cost_usd)
    own = money(cluster_bill("fat_tree", cluster, question.catalogue).cost_usd)
    ports = plural(cluster.servers * cluster.ports_per_server, "port")
    quiet(
        f"A fat-tree costs <b>{tree}</b> here, a full one for the job's own {ports} <b>{own}</b>: <em>Per iteration</em> says why."
    )


def draw(theme: Theme) -> None:
    """Draw the view Network."""
    controls()
    with show_input_errors():
        question, priced, findings = costs_now()

    cost_headline(question, priced, findings)
    _beside_the_job(question, priced)
    quiet(SIX)
    main_figures(question, priced, findings, theme)
    left, right = st.columns([1.22, 1], gap="medium")
    with left:
        hangs_on(question, theme)
        notes(findings)
    with right:
        parts_table()
        warnings(findings)
    size_and_year(question, priced, theme)
    materials(priced)
