"""The Cost page: the finding in a sentence, cost and power by part, what the saving depends on, and what does not hold."""

import math
from functools import partial

import streamlit as st

from topox_core.economics.comparison import (
    WARNING,
    Caveat,
    Question,
    caveats_of,
    most_gpus,
    tornado,
)
from topox_core.economics.networks import LINE_NAMES, NETWORK_RECORDS, NETWORKS, Bill, bills, saving
from topox_core.fabrics.comparison.compare import same_time
from topox_core.fabrics.crossover.verdict import RIVALS
from topox_core.fabrics.run import FabricRun, JobRequest
from topox_core.figures.networks.buying import swings_words, tornado as tornado_figure
from topox_core.figures.networks.cost import stacked
from topox_core.figures.palette import Theme
from topox_core.studies.buying.offers import OFFERS, price_and_source
from topox_core.text.numbers import amount_words, count, enumeration, money, percent, power, time
from topox_ui.answers.verdicts import priced_verdict
from topox_ui.cost.controls import MINE, CostState, question, radix
from topox_ui.shell.charts import (
    Content,
    Table,
    as_label,
    beside,
    chart,
    escape,
    headline,
    quiet,
    title_row,
)
from topox_ui.shell.menu import page_link
from topox_ui.state.prices import Prices, catalogue
from topox_ui.state.widgets import pick

# The networks whose circuits stay for a whole job.
FIXED = ("topoopt_patch_panel", "topoopt_ocs")


def costs_now() -> tuple[Question, dict[str, Bill], tuple[Caveat, ...]]:
    """Return the question, every network's bill, and what does not hold; raises InputError."""
    now = question()
    ports, switch = radix()
    return (
        now,
        bills(now.gpus, now.catalogue, now.counting),
        caveats_of(now, ports, f"the largest of {switch}"),
    )


def cost_headline(question: Question, priced: dict[str, Bill], caveats: tuple[Caveat, ...]) -> None:
    """Write what photonic rails cost and save, and where that stops being true."""
    against = CostState.now().against
    mine, other = priced[MINE], priced[against]
    cost, watts = saving(mine.cost_usd, other.cost_usd), saving(mine.power_w, other.power_w)
    words = (
        f"Photonic rails cost <b>{money(mine.cost_usd)}</b>, {_share(cost)} than {NETWORK_RECORDS[against].spoken}, "
        f"and draw <b>{power(mine.power_w)}</b>, {_share(watts)}"
    )
    cheapest = min((priced[name].cost_usd for name in FIXED), default=math.inf)
    if against not in FIXED and cheapest < mine.cost_usd and not same_time(cheapest, mine.cost_usd):
        words += (
            f". TopoOpt's fixed circuits are cheaper still, <b>{money(cheapest)}</b>, "
            "but cannot change during a job"
        )
    if any(one.name == "radix" for one in caveats):
        ports, switch = radix()
        most = count(most_gpus(question, ports))
        words += f'. <span class="bad">✗ Above {most} GPUs no {escape(switch)} switch has the ports</span>'
    if question.counting.method == "paper" and any(
        one.name == "dearer-than-whole-switches" for one in caveats
    ):
        words += '. <span class="bad">✗ Whole packet switches would be cheaper</span>'
    each = question.counting.gpus_per_server
    headline(
        f"Network · cost and power · {count(question.gpus)} GPUs, {each} per server, {question.catalogue.port_gbps:g}G · "
        f"{escape(question.catalogue.name)}{', edited' if Prices.now().parts else ''}",
        words.replace("\u00a0", "&nbsp;") + ".",
    )


def _share(saved: float) -> str:
    return f"{abs(100 * saved):.0f}&nbsp;% {'less' if saved >= 0 else 'more'}"


def worth_of_a_port(job: JobRequest, planned: FabricRun | None) -> None:
    """Write up to which price of an optical port switching is the cheaper iteration, once it is known.

    ``planned``: the planned circuits that the page shows beside it.
    """
    known = priced_verdict(job)
    usd = {
        RIVALS[one.name]: one.cheaper_up_to_usd
        for one in (known.brackets if known else ())
        if one.cheaper_up_to_usd is not None
    }
    less = [
        f"on {name} up to <b>${most:,.0f}</b> per port" for name, most in usd.items() if most > 0
    ]
    more = [name for name, most in usd.items() if most <= 0]
    ends = [f"less than {enumeration(less)}"] if less else []
    ends += [f"more than on {enumeration(more, 'or')}, even with free ports"] if more else []
    if not ends:
        return
    prices = catalogue()
    port = prices.part("ocs_port")
    assumed = [
        f"{one.name} ${one.price_usd:,.6g}"
        for one in prices.parts
        if one.price_from == "assumed" and one is not port
    ]
    delay_ms = job.cluster.reconfiguration_ms
    at = f"At {time(delay_ms)} per change" if delay_ms else "Without a delay"
    counted = price_and_source(OFFERS, port.price_usd, port.price_from)
    words = f"{at}, by the purchase price of the network alone, an iteration whose circuits change costs {', but '.join(ends)}. "
    if planned is not None and planned.result and planned.result.switching == "fixed":
        words += "The planned circuits below stay fixed at this setting. "
    words += f"A port of an optical switch is counted at {counted}"
    words += f"; assumed besides: {escape(enumeration(assumed))}." if assumed else "."
    quiet(
        f"{words} <em>Which switch</em> counts GPU hours and power too, at the delay of the best switch on offer."
    )
    page_link("Which switch", "The price per port with GPU hours: Which switch")


def slower_than_counted(delay_ms: float) -> str:
    """Return after a space how slow the switch is whose port price is counted; empty of one that is as fast as the delay asks."""
    usd = catalogue().part("ocs_port").price_usd
    slower = [
        time(one.delay_ms.usual)
        for one in OFFERS
        if one.port_usd.provenance == "published"
        and one.port_usd.usual == usd
        and one.delay_ms.usual > delay_ms
    ]
    if not slower:
        return ""
    return f" The port price counted, ${usd:,.6g}, is that of a switch that takes {slower[0]} per change."


def main_figures(
    question: Question, priced: dict[str, Bill], caveats: tuple[Caveat, ...], theme: Theme
) -> None:
    """Draw cost and power by part, side by side."""
    infeasible = (MINE,) if any(one.name == "radix" for one in caveats) else ()
    counting = question.counting
    counted = {"NICs": counting.nics, "servers": False, "fibre": counting.fibre}
    left_out = enumeration([part for part, on in counted.items() if not on])

    def by_part(measure: str, note: str, table: Table) -> None:
        """Draw cost or power by part."""
        title, figure = (
            f"{measure.capitalize()} by part",
            stacked(priced, measure, theme, infeasible),
        )
        alt = f"{title}: {totals_words(priced, measure)}"
        chart(figure, f"cost_{measure}", alt, table, "In numbers", title=(title, note))

    purchase = (
        f"purchase, once; {left_out} are left out. TopoOpt: fixed circuits, on a patch panel or OCS"
    )
    beside(
        2,
        partial(by_part, "cost", purchase, partial(savings_table, priced)),
        partial(by_part, "power", "watts as listed, all parts busy", partial(power_table, priced)),
    )


def totals_words(priced: dict[str, Bill], measure: str, per_gpu: bool = False) -> str:
    """Return each network's cost or power, or that of a GPU, for alternative text."""
    return "; ".join(
        f"{NETWORKS[name]} {amount_words(one.amount(measure) / (one.gpus if per_gpu else 1), measure)}"
        for name, one in priced.items()
    )


def savings_table(priced: dict[str, Bill]) -> Content:
    """Return each network's cost and power, a GPU's share, and what photonic rails save against it."""
    mine = priced[MINE]
    return [
        {
            "network": NETWORKS[name],
            "cost ($)": one.cost_usd,
            "cost per GPU ($)": one.cost_usd / one.gpus,
            "photonic rails save": percent(saving(mine.cost_usd, one.cost_usd))
            if name != MINE
            else "",
            "power (W)": one.power_w,
            "they save power": percent(saving(mine.power_w, one.power_w)) if name != MINE else "",
        }
        for name, one in priced.items()
    ]


def power_table(priced: dict[str, Bill]) -> Content:
    """Return each network's watts by part."""
    parts = [part for part in LINE_NAMES if any(one.count(part) for one in priced.values())]
    return [
        {
            "network": NETWORKS[name],
            "power (W)": one.power_w,
            "power per GPU (W)": one.power_w / one.gpus,
            **{
                f"{LINE_NAMES[part]} (W)": sum(
                    line.power_w for line in one.lines if line.part == part
                )
                for part in parts
            },
        }
        for name, one in priced.items()
    ]


def hangs_on(question: Question, theme: Theme) -> None:
    """Draw the tornado: what the saving depends on."""
    now = CostState.now()
    against, measure = now.against, now.measure
    base, rival = question.saving(MINE, against, measure), NETWORK_RECORDS[against].spoken
    [choice] = title_row(
        (3, 1),
        "What the saving depends on",
        f"tornado chart of the saving against {rival}, one input changed at a time; now {_signed(base)}",
    )
    pick(CostState, "measure", label="Saving of", at=choice, label_visibility="collapsed")
    swings = tornado(question, MINE, against, measure)
    chart(
        tornado_figure(swings, base, theme),
        "tornado",
        f"Saving in {measure} of photonic rails against {rival}, now {_signed(base)}: {swings_words(swings)}",
        lambda: [
            {
                "what moves": one.name,
                "to": to,
                "saving (%)": 100 * share,
                "change (points)": 100 * (share - base),
            }
            for one in swings
            for to, share in one.ends
        ],
        "In numbers",
    )


def warnings(caveats: tuple[Caveat, ...]) -> None:
    """Write in boxes where a headline does not hold."""
    for one in caveats:
        if one.kind == WARNING:
            st.info(as_label(one.text), icon=":material/info:")


def notes(caveats: tuple[Caveat, ...]) -> None:
    """Write in quiet lines what else a reader should know."""
    words = " ".join(one.text for one in caveats if one.kind != WARNING)
    if words:
        with st.expander("Notes", key="cost_notes", type="compact"):
            quiet(f"{words}")


def _signed(share: float) -> str:
    return percent(share).replace("-", "−")
