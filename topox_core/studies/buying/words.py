"""The answer to a buyer in words and tables, the same on the page and from the command line.

Names are as a file has them; ``**`` stands round what matters most.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from topox_core.fabrics.comparison.compare import EQUAL, same_time
from topox_core.studies.buying.answer import (
    FASTEST_MS,
    SLOWEST_MS,
    Slowest,
    Verdict,
    beats,
    front_of_rows,
    lead,
)
from topox_core.studies.buying.offers import (
    FIGURES,
    SwitchProduct,
    offer_of,
    price_and_source,
    published_for,
)
from topox_core.studies.buying.question import DELAY, PRICE, Choice, Question, Row, levels_of
from topox_core.studies.buying.run import Answer
from topox_core.text.numbers import apart, delay_label, enumeration, percent, plural, short, time

# By what is to be least: what a switch must do to win, and how the best stands beside the best without one where it
# wins, where it loses, and where both are equal.
BEATS = {
    "dollars": "cost less per iteration than",
    "time": "be faster than",
    "price": "cost less than",
}
STANDS = {
    "dollars": (
        "an iteration costs **{} less** than on {}",
        "an iteration costs **{} more** than on {}",
        "an iteration costs as much within {} as on {}",
    ),
    "time": (
        "an iteration takes **{} less** time than on {}",
        "an iteration takes **{} longer** than on {}",
        "an iteration takes as much within {} as on {}",
    ),
    "price": (
        "the network costs **{} less** than {}",
        "the network costs **{} more** than {}",
        "the network costs as much within {} as {}",
    ),
}
Lines = tuple[tuple[str, str], ...]
FORMAT, VERSION = "topox-buying", 1


NAMED = 2  # networks that tie and stand in the headline by name; the details name all


def finding(answer: Answer) -> str:
    """Return what to buy, and by how much it beats the best rival, in one sentence."""
    found, question = answer.verdict, answer.question
    computed = f"{'could be' if answer.complete else 'has been'} computed"
    if found is None:
        return f"No network {computed} for this job."
    if not found.offers:
        too_few = len(question.unfits) == len(question.offers) * len(question.degrees)
        # What is still to come, or was cancelled, says nothing of the switches.
        if not (too_few or answer.complete):
            return "No switch on offer has been computed."
        needed = question.planes(question.degrees[0])[1]
        why = f": it takes a switch of {needed:,} ports, or several that are joined" * too_few
        return f"**No switch on offer can be used** for this job{why}."
    if not found.rivals:
        one = _some(question, found.offers, "one")
        words = f"of the switches, **{one}** is best; no network without switches {computed}."
    else:
        words = _advice(answer, found)
    words = f"{_at_price(question, found)}{words}"
    return words[0].upper() + words[1:] if words[0] != "*" else f"**{words[2].upper()}{words[3:]}"


def details(answer: Answer) -> Lines:
    """Return what stands behind the finding: names, times, prices, what tells apart what ties, whether the ranges turn it."""
    found, question, ordered = answer.verdict, answer.question, answer.ordered
    if found is None or not found.compared:
        return ()
    mine, theirs = apart([found.offer.iteration_ms or 0.0, found.rival.iteration_ms or 0.0])
    rivals = _within(found.rivals, found.offer.choice)
    both = (found.offer, found.rival)
    usd, rival_usd = (f"${short(question.cost(row, 'dollars'))}" for row in both)
    settled = answer.complete or answer.swings is not None or answer.turned is not None
    best = "Best optical switch" if len(found.offers) == 1 else "Best optical switches"
    in_order = "A full fat-tree whose hosts send in an order would take at most **{}**."
    lines = (
        (best, f"{_either(found.offers)}."),
        ("Best without one", f"{rivals[0].upper()}{rivals[1:]}."),
        ("Iteration time", f"{mine} instead of {theirs}."),
        ("Cost of an iteration", f"{usd} instead of {rival_usd}, GPU hours included."),
        ("Price of a port", _port_prices(question, found) if question.by != "time" else ""),
        ("Order of sending", in_order.format(time(ordered.iteration_ms or 0)) if ordered else ""),
        ("What ties", _told_apart(question, found)),
        ("Within the ranges", _ranges(question, found, ordered is not None) if settled else ""),
    )
    return tuple(line for line in lines if line[1])


def _at_price(question: Question, found: Verdict) -> str:
    """Return at which price a verdict holds, and why at that one, where none that it depends on was printed for its switch."""
    prices = [offer_of(question.offers, row.choice.key).port_usd for row in found.offers]
    if question.by == "time" or any(one.provenance != "assumed" for one in prices):
        return ""
    usd = prices[0].usual
    if any(one.usual != usd for one in prices):
        return "At assumed port prices, "
    of, these = published_for(question.offers, usd), "these" if len(prices) > 1 else "this one"
    why = f" (that of {of}, as none is published for {these})" if of else ""
    return f"At an assumed port price of ${usd:,.6g}{why}, "


def _port_prices(question: Question, found: Verdict) -> str:
    """Return the prices of the best switches, where each is from, and how many switches share one price."""
    prices = list(dict.fromkeys(port_price(question, row.choice) for row in found.offers))
    usd = {float(row.choice.values[PRICE]) for row in found.offers}
    having = sum({one.port_usd.usual} == usd for one in question.offers)
    shared = f", the same for {having} of {len(question.offers)} switches, which differ in delay, not in price"
    return f"{enumeration(prices)}{shared * (having > 1)}."


def port_price(question: Question, choice: Choice) -> str:
    """Return the price of a port of a switch on offer and where it is from; empty of a rival."""
    if choice.rival:
        return ""
    status = offer_of(question.offers, choice.key).port_usd.provenance
    return price_and_source(question.offers, float(choice.values[PRICE]), status)


def _advice(answer: Answer, found: Verdict) -> str:
    """Return whether to buy a switch, by how much it is better or worse than what is best without one, and what would turn that."""
    question, bought = answer.question, _some(answer.question, found.offers)
    rivals, ordered = _within(found.rivals, found.offer.choice), answer.ordered
    less, more, same = STANDS[question.by]
    if not found.wins:
        equal = same_time(question.cost(found.offer), question.cost(found.rival))
        stands, share = (same, EQUAL) if equal else (more, -found.lead)
        none = f"**no optical switch is worth buying**: with the best, {bought}"
        return f"{none}, {stands.format(percent(share), rivals)}."
    why = less.format(percent(found.lead), rivals)
    if ordered is None:
        return f"buy **{bought}**: {why}."
    left = lead(question, found.offer, ordered)
    saved = f"at most **{percent(left)}**, perhaps nothing" if beats(left) else "nothing"
    return (
        f"**{bought}** is worth buying while hosts of a fat-tree share its links: {why}. "
        f"If they sent in an order, it would save {saved}."
    )


def _some(question: Question, rows: Sequence[Row], noun: str = "a switch") -> str:
    """Return the networks that tie in short: by their delay if all others are slower, else the first by name, the rest by number."""
    several = len(question.degrees) > 1
    names = [row.choice.title if several else row.choice.short for row in rows]
    if len(rows) > 1 and not several:
        keys = {row.choice.key for row in rows} | {one.key for one, _ in question.unfits}
        slowest = max(rows, key=lambda row: float(row.choice.values[DELAY]))
        others = [one.delay_ms.usual for one in question.offers if one.key not in keys]
        if not others:
            return "any switch on offer"
        if min(others) > float(slowest.choice.values[DELAY]):
            return f"{noun} that changes within {delay_words(slowest)}, such as {names[0]}"
    if len(names) > NAMED:
        names = [*names[: NAMED - 1], f"{len(names) - NAMED + 1} others"]
    return enumeration(names, "or")


def _told_apart(question: Question, found: Verdict) -> str:
    """Return what differs between the networks that tie, in a sentence; nothing where one is best alone."""
    rows = found.offers if found.wins or len(found.rivals) == 1 else found.rivals
    if len(rows) == 1:
        return ""
    told = {
        "price": [short_usd(row.network_usd or 0.0) for row in rows],
        "power": [f"{row.network_w or 0.0:,.1f} W" for row in rows],
    }
    if not rows[0].choice.rival:
        offers = [offer_of(question.offers, row.choice.key) for row in rows]
        told |= {
            "delay": [delay_words(row) for row in rows],
            "ports per switch": [f"{one.ports.usual:,.0f}" for one in offers],
        }
    differ = [f"{what} ({', '.join(of)})" for what, of in told.items() if len(set(of)) > 1]
    same = "are as fast" if question.by == "time" else "cost the same"
    words = f"These {same} within {percent(EQUAL)}"
    return (
        f"{words}; in this order they differ in {enumeration(differ)}." if differ else f"{words}."
    )


def _ranges(question: Question, found: Verdict, in_order: bool) -> str:
    """Return whether the ranges turn the advice; ``in_order``: it rests on hosts that send in none, whatever the ranges."""
    if not found.turns:
        premise = "While hosts share links, the" if in_order else "The"
        return f"{premise} advice holds over the whole assumed range of delay, price and power."
    best = found.possible
    if found.wins or best is None:
        return "Within the assumed ranges of delay, price and power this advice **could change**."
    gain = percent(lead(question, best, found.rival))
    return f"This advice **could change**: at the best end of all its ranges {best.choice.title} would save {gain}."


def _either(rows: Sequence[Row]) -> str:
    """Return the networks that tie: A, 2 ports per server; A, B or C, 2 ports per server."""
    if len({row.choice.degree for row in rows}) > 1:
        return enumeration([row.choice.title for row in rows], "or")
    *first, last = rows
    return enumeration([*(row.choice.name for row in first), last.choice.title], "or")


def _within(rows: Sequence[Row], beside: Choice) -> str:
    """Return rivals within a sentence, their ports only where they are not those of the network beside them."""
    words = []
    for choice in (row.choice for row in rows):
        article = "" if choice.key == "fixed" else "a "
        name = choice.name if choice.degree == beside.degree else choice.title
        words.append(f"{article}{name[0].lower()}{name[1:]}")
    return enumeration(words, "or")


def questions_turned(
    answer: Answer, by_time_ms: float | None = None, by_purchase_usd: float | None = None
) -> Lines:
    """Return the break-even questions with their answers.

    ``by_time_ms``: up to which delay the verdict on the job, which counts no price, lets switching pay
    against the same rival; ``by_purchase_usd``: up to which price of a port, GPU hours not counted.
    """
    turned, found = answer.turned, answer.verdict
    if turned is None or found is None or not found.compared:
        return ()
    choice, rival = found.offer.choice, _within((found.rival,), found.offer.choice)
    question, ports = answer.question, turned.fewest_ports
    by_dollars = question.by == "dollars"
    lines = []
    if turned.slowest is not None:
        asked = f"How slow may a switch be at the price of {choice.name}, and still {BEATS[question.by]} {rival}?"
        by_time = (
            " By iteration time alone it is **{}**, as Schedule and Compare say."
            if by_dollars
            else " Schedule and Compare say **{}**: they search to 5 % of the delay."
        )
        counts = " This counts GPU hours and the network's price and power." * by_dollars
        said = "" if by_time_ms is None else by_time.format(time(by_time_ms))
        lines.append((asked, f"{_slowest(turned.slowest)}{counts}{said}"))
    fewest = "None of the numbers of ports that were tried wins."
    if ports is not None:
        end = ", the fewest possible." if ports == 1 else "; with fewer it loses."
        fewest = f"**{plural(ports, 'port')} per server**{end}"
    lines.append((f"With how few ports per server does {choice.name} still win?", fewest))
    if (usd := turned.highest_usd) is not None:
        counted = " per iteration, GPU hours included" * by_dollars
        highest = "Not even free ports would make it as cheap."
        if usd >= 0:
            price = port_price(question, choice)
            highest = f"Up to **${usd:,.0f} per port**; counted with {price}."
        if by_dollars and by_purchase_usd is not None and by_purchase_usd > 0:
            highest += (
                f" By the purchase price of the network alone it is **${by_purchase_usd:,.0f}**, at the cluster's "
                "own delay, as Per iteration says."
            )
        lines.append(
            (f"Up to which price per port does {choice.name} cost no more{counted}?", highest)
        )
    return tuple(lines)


def _slowest(found: Slowest) -> str:
    if found.wins_ms is None:
        return f"No delay is short enough: it does not win even at {time(FASTEST_MS)}."
    if found.loses_ms is None:
        return f"Every delay is short enough: it wins even at {time(SLOWEST_MS)}."
    won, lost = apart([found.wins_ms, found.loses_ms])
    return f"At least up to a delay of **{won}**; from {lost} on no plan found so far wins."


def network_rows(answer: Answer) -> list[dict[str, Any]]:
    """Return a row per network: time, price and power with their ranges, dollars, lead, whether it is on the front."""
    question, found = answer.question, answer.verdict
    usual = [row for row in answer.rows if row.choice.level == "usual"]
    front = front_of_rows(usual)
    rows = []
    for row, on_front in zip(usual, front, strict=True):
        ends = levels_of(answer.rows, row)
        low, high = ends.get("low", row), ends.get("high", row)
        gain = (
            lead(question, row, found.rival)
            if found is not None and found.rivals and row.known
            else None
        )
        rows.append(
            {
                "network": row.choice.name,
                "ports per server": row.choice.degree,
                "delay (ms)": row.choice.values.get(DELAY),
                "iteration (ms)": row.iteration_ms,
                "at best (ms)": low.iteration_ms,
                "at worst (ms)": high.iteration_ms,
                "price per port": port_price(question, row.choice),
                "network ($)": row.network_usd,
                "network (W)": row.network_w,
                "dollars per iteration": question.cost(row, "dollars") if row.known else None,
                "saves (%)": None if gain is None else 100 * gain,
                "nothing beats it": "yes" if on_front else "",
                "switches": None
                if row.choice.rival
                else question.switches(
                    offer_of(question.offers, row.choice.key), row.choice.degree
                ),
                "note": row.message,
            }
        )
    return rows


def unfit_words(question: Question) -> tuple[str, ...]:
    """Return in a sentence each which offers have too few ports, and how many whole switches would have enough."""
    said = []
    for offer, degree in question.unfits:
        needed, ports = question.planes(degree)[1], int(offer.ports.usual)
        whole = plural(-(-needed // ports), "whole switch", "whole switches")
        said.append(
            f"{offer.title} is left out: each switch must reach all servers, which takes {needed:,} ports, and it "
            f"has {ports:,}. {whole} joined would have as many; what joins them is not computed here."
        )
    return tuple(said)


def caveats(question: Question) -> tuple[str, ...]:
    """Return what every answer depends on and what is not counted."""
    assumed, gpus = question.assumed, question.gpus
    return (
        f"A GPU costs ${assumed.usd_per_gpu_hour.usual:g} per hour (assumed), {plural(gpus, 'GPU')} in all; "
        f"the network its price over {assumed.years.usual:g} years and ${assumed.usd_per_kwh.usual:g} per kWh times "
        f"a PUE of {assumed.pue:g} (assumed).",
        "Only the switch ports in use are paid for, not whole switches; the table says how many switches there are.",
        "The fat-tree of the same cost is priced as the circuits at the port price of the price set.",
        "Plans are made by list scheduling, unless a shorter one is known. A better one would help switches, not fat-trees.",
        "Insertion loss, the time until a NIC sees light again, racks, fibre and labour are not counted.",
    )


def offer_rows(offers: Sequence[SwitchProduct]) -> list[dict[str, Any]]:
    """Return a row a figure of an offer: its range and where it comes from."""
    return [
        {
            "switch": one.title,
            "figure": f"{words}{f' ({unit})' if unit else ''}",
            "low": one.figure(field).low,
            "usual": one.figure(field).usual,
            "high": one.figure(field).high,
            "from": one.figure(field).provenance,
            "source": one.figure(field).source,
        }
        for one in offers
        for field, (words, unit, _) in FIGURES.items()
    ]


def as_record(answer: Answer) -> dict[str, Any]:
    """Return the answer as the command writes it."""
    found, turned = answer.verdict, answer.turned
    record: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "finding": plain(finding(answer)),
        "details": {name: plain(words) for name, words in details(answer)},
        "complete": answer.complete,
        "networks": network_rows(answer),
        "left_out": list(unfit_words(answer.question)),
        "caveats": list(caveats(answer.question)),
    }
    if found is not None and found.compared:
        record |= {
            "buy": found.best[0].choice.key,
            "ports": found.best[0].choice.degree,
            "as_good": [row.choice.key for row in found.best[1:]],
            "best_switch": found.offer.choice.key,
            "best_rival": found.rival.choice.key,
            "saves": found.lead,
            "saves_at_worst": found.least_lead,
            "saves_at_best": found.most_lead,
            "could_turn": found.turns,
        }
    if turned is not None:
        slowest = turned.slowest
        record |= {
            "slowest_ms": None if slowest is None else slowest.wins_ms,
            "loses_at_ms": None if slowest is None else slowest.loses_ms,
            "fewest_ports": turned.fewest_ports,
            "highest_port_usd": turned.highest_usd,
        }
    if answer.swings is not None:
        record["hangs_on"] = swing_rows(answer)
    return record


def swing_rows(answer: Answer) -> list[Mapping[str, Any]]:
    """Return the tornado as a table."""
    return [
        {"figure": one.name, "to": to, "saves (%)": 100 * saved}
        for one in answer.swings or ()
        for to, saved in one.ends
    ]


def plain(words: str) -> str:
    """Return words without marks, for a terminal."""
    return words.replace("**", "")


def short_usd(value: float) -> str:
    """Return dollars: $1.3 M, $35,450, $0.000512."""
    if value >= 1e6:
        return f"${short(value / 1e6)} M"
    return f"${value:,.0f}" if value >= 1000 else f"${short(value)}"


def delay_words(row: Row) -> str:
    """Return the delay of a row's switch in the units of axes and lists, from a second in s; empty of a rival."""
    delay = row.choice.values.get(DELAY)
    if delay is None:
        return ""
    return time(float(delay)) if float(delay) >= 1000 else delay_label(float(delay))
