"""What to buy: offers and a reader's changes of them, dollars of an iteration by hand, break-even points, the tornado."""

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest

from tests.refusal import refusal
from topox_core.fabrics.planning.passed_plans import PassedPlan
from topox_core.fabrics.planning.scheduled import schedule
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.runs.run import finish
from topox_core.studies.buying.answer import (
    Slowest,
    beats,
    delays_between,
    fewer_ports,
    fewest_of,
    front_of_rows,
    lead,
    slowest_of,
    swings,
    verdict,
    with_orders_of,
)
from topox_core.studies.buying.offers import (
    FIGURES,
    OFFERS,
    Estimate,
    dump_offers,
    edits_between,
    load_offers,
    offer_of,
    with_edit,
    with_edits,
)
from topox_core.studies.buying.question import (
    DELAY,
    Assumptions,
    Question,
    Row,
    buying_study,
    planned_at,
    with_known_plans,
)
from topox_core.studies.buying.run import Answer, Turned, buying_run
from topox_core.studies.buying.words import (
    details,
    finding,
    network_rows,
    questions_turned,
    unfit_words,
)
from topox_core.studies.outcomes import point_job
from topox_core.studies.study_run import PointRow, chains, with_harder_plans
from topox_core.studies.subject import Resolved, Subject, resolve


@pytest.fixture(scope="module")
def race() -> Resolved:
    return resolve(Subject("sample", {"name": "race"}))


@pytest.fixture(scope="module")
def question(race: Resolved) -> Question:
    return Question(race)


@pytest.fixture(scope="module")
def workers() -> Iterator[Executor]:
    with ThreadPoolExecutor(1) as executor:
        yield executor


@pytest.fixture(scope="module")
def known() -> dict[str, PointRow]:
    return {}


@pytest.fixture(scope="module")
def answered(workers: Executor, known: dict[str, PointRow]) -> Answer:
    offers = tuple(offer_of(OFFERS, key) for key in ("plzt", "piezo"))
    question = Question(resolve(Subject("sample", {"name": "blackboard"})), offers)
    answer = finish(buying_run(question, executor=workers, known=known))
    assert answer.complete and not answer.lost
    return answer


def row(
    question: Question, key: str, time_ms: float, usd: float, level: str = "usual", degree: int = 1
) -> Row:
    """Return a made-up row, so that every number below can be checked by hand."""
    rival = key in ("fixed", "fat_tree", "same_cost")
    offer = None if rival else offer_of(question.offers, key)
    choice = question.at(offer, degree, level) if offer else question.rival(key, degree)
    return Row(choice, time_ms, usd, 0.0)


# Written off over 4 years of 8,760 h, $35,040 are $1 an hour; four servers of one GPU at $2 are $8.
DOLLAR_AN_HOUR = 35_040.0


def test_dollars_of_an_iteration_by_hand(question: Question) -> None:
    # ($1 + $8) an hour x 400 s; 10 kW x 1.3 x $0.10 a kWh are $1.30 an hour more.
    for watts, usd in ((0.0, 1.0), (10_000.0, 10.3 / 9)):
        found = question.usd_per_iteration(400_000.0, DOLLAR_AN_HOUR, watts)
        assert found == pytest.approx(usd)
    eight = replace(question, assumed=replace(question.assumed, gpus_per_server=8))
    assert eight.usd_per_iteration(3_600_000.0, 0.0, 0.0) == pytest.approx(64.0)


def test_the_verdict_by_hand(question: Question) -> None:
    rows = [
        row(question, "fixed", 400_000.0, 0.0),  # $8 an hour: 8/9
        row(question, "fat_tree", 400_000.0, DOLLAR_AN_HOUR),  # 1
        row(question, "sip", 200_000.0, 4 * DOLLAR_AN_HOUR),  # $12 an hour: 2/3
        row(question, "rotornet", 200_900.0, 4 * DOLLAR_AN_HOUR),  # 0.45 % more
        row(question, "mems", 300_000.0, 4 * DOLLAR_AN_HOUR),  # 1
        row(question, "sip", 200_000.0, 4 * DOLLAR_AN_HOUR, "low"),
        row(question, "sip", 300_000.0, 8 * DOLLAR_AN_HOUR, "high"),  # $16 an hour: 4/3
    ]
    found = verdict(question, rows)
    keys = [[one.choice.key for one in some] for some in (found.best, found.rivals)]
    assert keys == [["sip", "rotornet"], ["fixed"]]
    assert found.lead == pytest.approx(1 - (2 / 3) / (8 / 9))
    assert found.least_lead == pytest.approx(1 - (4 / 3) / (8 / 9))
    assert found.wins and found.turns and not verdict(question, rows[:6]).turns


@pytest.mark.parametrize(
    ("by", "winner"), [("dollars", "sip"), ("time", "fat_tree"), ("price", "fixed")]
)
def test_by_time_and_by_price_others_win(race: Resolved, by: str, winner: str) -> None:
    question = Question(race, by=by)
    rows = [
        row(question, "fixed", 400_000.0, 0.5 * DOLLAR_AN_HOUR),
        row(question, "fat_tree", 190_000.0, 90 * DOLLAR_AN_HOUR),
        row(question, "sip", 200_000.0, 4 * DOLLAR_AN_HOUR),
        row(question, "mems", 300_000.0, 4 * DOLLAR_AN_HOUR),
    ]
    assert [one.choice.key for one in verdict(question, rows).best] == [winner]
    assert front_of_rows(rows).tolist() == [True, True, True, False]


def words_of(question: Question, *rows: Row) -> str:
    return finding(answer_of(question, *rows)).replace("\u00a0", " ")


def answer_of(question: Question, *rows: Row) -> Answer:
    return Answer(question, rows, verdict=verdict(question, rows))


def told(question: Question, *rows: Row) -> dict[str, str]:
    lines = details(answer_of(question, *rows))
    return {name: words.replace("\u00a0", " ") for name, words in lines}


def test_what_is_still_to_come_is_not_said_to_be_impossible(question: Question) -> None:
    """Rivals are computed first: for a while there is no row of a switch, and that is no verdict."""
    rows = (row(question, "fixed", 400_000.0, 0.0),)
    so_far = Answer(question, rows, verdict=verdict(question, rows))
    assert finding(so_far) == "No switch on offer has been computed."
    assert "can be used" in finding(replace(so_far, complete=True))
    rows = (row(question, "sip", 200_000.0, 0.0),)
    so_far = Answer(question, rows, verdict=verdict(question, rows))
    assert "no network without switches has been computed" in finding(so_far)
    assert "could be computed" in finding(replace(so_far, complete=True))
    assert "has been computed" in finding(Answer(question))


def test_what_ties_is_named_with_what_tells_it_apart(question: Question) -> None:
    fixed, sip = row(question, "fixed", 400_000.0, 0.0), row(question, "sip", 200_000.0, 0.0)
    mems, piezo = (
        replace(row(question, key, 200_000.0, 0.0), network_w=watts)
        for key, watts in (("mems", 4.8), ("piezo", 0.0))
    )
    assert words_of(question, fixed, mems, piezo) == (
        "Buy **Piezo or 3D MEMS**: an iteration costs **50 % less** than on fixed circuits on a patch panel."
    )
    behind = told(question, fixed, mems, piezo)
    assert (
        behind["Best optical switches"]
        == "Piezo (Polatis) or 3D MEMS (Calient), 1 port per server."
    )
    assert behind["What ties"].startswith(
        "These cost the same within 0.5 %; in this order they differ in power (0.0 W, 4.8 W)"
    )
    assert behind["Price of a port"].startswith(
        "$520 (published for Polatis), the same for 6 of 7 "
    )
    assert "What ties" not in told(question, fixed, sip)
    panel, tree = row(question, "fixed", 100.0, 0.0), row(question, "fat_tree", 100.4, 0.0)
    lost = words_of(question, panel, tree, row(question, "piezo", 100.2, 0.0))
    assert lost == (
        "**No optical switch is worth buying**: with the best, Piezo, an iteration costs as much within 0.5 % as on "
        "fixed circuits on a patch panel or a full fat-tree."
    )
    slow = [row(question, one.key, 100.0, 0.0) for one in OFFERS[2:]]
    assert "**RotorNet or 4 others**" in words_of(question, fixed, *slow)


def test_switches_that_tie_and_are_faster_than_all_others_are_one_advice(
    question: Question,
) -> None:
    fixed = row(question, "fixed", 400_000.0, 0.0)
    rows = [row(question, one.key, 100.0, 0.0) for one in OFFERS]
    said = words_of(question, fixed, *rows[:3])
    assert said.startswith(
        "At an assumed port price of $520 (that of Polatis, as none is published for these), buy "
        "**a switch that changes within 10 µs, such as PLZT**: "
    )
    assert "buy **any switch on offer**" in words_of(question, fixed, *rows).lower()


def test_a_verdict_that_hangs_on_assumed_prices_alone_begins_with_them(question: Question) -> None:
    fixed, sip = row(question, "fixed", 400_000.0, 0.0), row(question, "sip", 200_000.0, 0.0)
    price = (
        "At an assumed port price of $520 (that of Polatis, as none is published for this one), "
    )
    assert words_of(question, fixed, sip).startswith(f"{price}buy **Silicon")
    assert words_of(question, sip).startswith(f"{price}of the switches")
    assert words_of(replace(question, by="time"), fixed, sip).startswith("Buy **Silicon")
    dear = row(question, "sip", 900_000.0, 0.0)
    assert words_of(question, fixed, dear).startswith(f"{price}**no opt")
    alone = replace(question, offers=tuple(one for one in question.offers if one.key == "sip"))
    assert told(alone, fixed, sip)["Price of a port"] == "$520 (assumed)."
    assert words_of(alone, fixed, sip).startswith("At an assumed port price of $520, buy **Silicon")
    moved = with_edit(question.offers, "plzt", "port_usd", "usual", 600.0)
    two = (
        replace(question, offers=moved),
        *(row(question, key, 2e5, 0.0) for key in ("plzt", "sip")),
    )
    assert words_of(*two, fixed).startswith("At assumed port prices, buy **")
    assert told(question, fixed, sip)["Price of a port"] == (
        "$520 (published for Polatis), the same for 6 of 7 switches, which differ in delay, not in price."
    )
    answer = Answer(question, (fixed, sip), verdict=verdict(question, (fixed, sip)))
    assert [one["price per port"] for one in network_rows(answer)] == [
        "",
        "$520 (published for Polatis)",
    ]
    turned = replace(answer, turned=Turned(None, 1, 42_998.0))
    assert (
        questions_turned(turned)[-1][1]
        == "Up to **$42,998 per port**; counted with $520 (published for Polatis)."
    )


def test_where_a_rival_wins_the_offer_that_could_win_is_named(question: Question) -> None:
    assert verdict(question, []) is None
    rows = [
        row(question, "fixed", 100.0, 0.0),
        row(question, "sip", 100.0, 0.0),  # as much is no win
        row(question, "mems", 120.0, 0.0),
        row(question, "mems", 90.0, 0.0, "low"),
    ]
    found = verdict(question, rows)
    assert (found.wins, found.turns, found.possible.choice.key) == (False, True, "mems")
    answer = Answer(question, tuple(rows), verdict=found, complete=True)
    assert "**no optical switch is worth buying**" in finding(answer)
    assert "would save 10" in dict(details(answer))["Within the ranges"]


def test_an_offer_with_too_few_ports_is_said_with_the_whole_switches_it_takes(
    race: Resolved,
) -> None:
    few = with_edit(OFFERS, "plzt", "ports", "usual", 3.0)
    question = Question(race, few, degrees=(1, 2))
    assert question.unfits == ((few[0], 1), (few[0], 2))
    for line in unfit_words(question):
        assert "takes 4 ports, and it has 3. 2\u00a0whole switches joined" in line
    assert "plzt" not in {one.key for one in question.choices}
    # Two ports a server are two planes of four ports each: on 8 ports one switch carries both.
    eight = with_edit(OFFERS, "plzt", "ports", "low", 8.0)
    assert Question(race, eight).switches(offer_of(OFFERS, "plzt"), 4) == 1
    assert Question(race).switches(replace(OFFERS[0], ports=Estimate(6, 6, 6)), 2) == 2


def test_a_faster_switch_can_use_the_plan_of_a_slower_one_whatever_both_are_called_and_cost(
    question: Question,
) -> None:
    offers = [offer_of(OFFERS, key) for key in ("sip", "mems", "lc")]
    dear = question.at(offers[1], 1, "high")
    choices = [*(question.at(one, 1) for one in offers), dear, question.rival("fixed", 1)]
    study = buying_study(question, choices)
    times = zip(study.points, (100.0, 90.0, 120.0, 95.0, 60.0), strict=True)
    rows = [
        PointRow(k, point, measures={"iteration_ms": ms, "changes": 1.0})
        for k, (point, ms) in enumerate(times)
    ]
    found = [row.measures["iteration_ms"] for row in with_harder_plans(rows, chains(study))]
    assert found == [90.0, 90.0, 120.0, 95.0, 60.0]


def test_a_plan_that_another_page_found_is_one_of_every_switch_and_rivals_have_none(
    question: Question,
) -> None:
    slow = question.at(OFFERS[0], 2, "usual", {DELAY: 2.0}).values
    request = point_job(question.resolved, slow)
    found = schedule(request.task_graph, request.cluster, request.settings)
    plan = PassedPlan.of(found)
    assert plan is not None and found.makespan_ms is not None
    sip, mems, fixed = (row(question, key, 1e6, 1.0, degree=2) for key in ("sip", "mems", "fixed"))
    rows = with_known_plans(question, (sip, mems, fixed), [plan])
    assert rows[0].iteration_ms is not None and rows[0].iteration_ms <= found.makespan_ms
    assert [one.handed_on for one in rows] == [True, True, False] and rows[2] == fixed
    job = point_job(question.resolved, question.values(sip.choice))
    assert rows[0].iteration_ms == plan.on(job)[1].makespan_ms
    short = replace(sip, iteration_ms=1e-3)
    assert with_known_plans(question, (short,), [plan]) == (short,)
    assert with_known_plans(question, (sip,), ()) == (sip,)


def test_who_asks_for_the_plan_of_a_row_is_told_for_which_delay_it_was_made(
    question: Question,
) -> None:
    rows = [
        row(question, key, time_ms, 1.0)
        for key, time_ms in (("plzt", 90.0), ("sip", 90.0), ("mems", 99.0), ("fixed", 90.0))
    ]
    sip_ms = offer_of(OFFERS, "sip").delay_ms.usual
    assert [planned_at(rows, one) for one in rows] == [sip_ms, sip_ms, 15.0, None]
    assert planned_at(rows, replace(rows[0], handed_on=True)) is None


def test_a_break_even_delay_says_what_it_counts_and_what_the_verdict_says_by_time(
    question: Question,
) -> None:
    rows = (row(question, "fixed", 100.0, 0.0), row(question, "sip", 50.0, 0.0))
    turned = Turned(Slowest(0.380, 0.383), 1, 900.0)

    def said(asked: Question, by_time_ms: float | None) -> str:
        answer = Answer(asked, rows, verdict=verdict(asked, rows), turned=turned)
        return " ".join(questions_turned(answer, by_time_ms)[0]).replace("\u00a0", " ")

    assert "still cost less per iteration than fixed circuits" in said(question, None)
    assert "counts GPU hours" in said(question, None) and "Schedule" not in said(question, None)
    assert "By iteration time alone it is **0.335 ms**" in said(question, 0.335)
    answer = Answer(question, rows, verdict=verdict(question, rows), turned=turned)
    for usd, says in ((612.0, "alone it is **$612**"), (-3.0, ""), (None, "")):
        highest = questions_turned(answer, None, usd)[-1]
        assert "GPU hours included" in highest[0] and "**$900 per port**" in highest[1]
        assert says in highest[1] and ("Per iteration" in highest[1]) == bool(says)
    by_time = said(replace(question, by="time"), 0.335)
    assert "be faster than" in by_time and "GPU hours" not in by_time


def test_slowest_delay_and_fewest_ports_by_hand(question: Question) -> None:
    rival = row(question, "fixed", 100.0, 0.0)
    rows = [
        Row(question.at(OFFERS[0], 1, "usual", {DELAY: delay_ms}), time_ms, 0.0, 0.0)
        for delay_ms, time_ms in ((1, 90), (10, 99), (100, 100))
    ]
    found = [slowest_of(question, some, rival) for some in (rows, rows[:2], rows[2:])]
    assert found == [Slowest(10.0, 100.0), Slowest(10.0, None), Slowest(None, 100.0)]
    between = delays_between(found[0])
    assert len(between) == 6 and all(10 < one < 100 for one in between)
    ports = [row(question, "sip", time, 0.0, degree=d) for d, time in ((1, 120), (2, 90), (4, 50))]
    assert [fewest_of(question, some, rival) for some in (ports, ports[:1])] == [2, None]
    assert fewer_ports(question, 4) == (1, 2, 3)


def test_what_an_order_of_sending_leaves_of_the_advice(question: Question) -> None:
    """A full fat-tree in the time of a switch that never blocks, at its own price."""
    tree = row(question, "fat_tree", 400_000.0, DOLLAR_AN_HOUR)  # $9 an hour: 1
    switch = row(question, "sip", 200_000.0, 4 * DOLLAR_AN_HOUR)  # $12 an hour: 2/3
    rows = (tree, switch)
    computed = replace(tree, network_usd=None)
    said = {}
    for ms in (320_000.0, 200_000.0, 266_000.0, 400_000.0, None):
        ordered = with_orders_of(rows[:1], replace(computed, iteration_ms=ms), tree)
        answer = Answer(question, rows, in_order=ordered, verdict=verdict(question, rows))
        behind = dict(details(answer)).get("Order of sending", "")
        said[ms] = (behind.replace("\u00a0", " "), finding(answer).replace("\u00a0", " "))
        if behind:
            [swing] = swings(question, answer.verdict, (), (), answer.ordered)
            assert swing.low[1] == lead(question, switch, ordered) and swing.high is None
    behind, advice = said[320_000.0]
    assert behind == "A full fat-tree whose hosts send in an order would take at most **320 s**."
    assert "is worth buying while hosts of a fat-tree share its links: an iteration" in advice
    assert advice.endswith(
        "If they sent in an order, it would save at most **16.7 %**, perhaps nothing."
    )
    for ms in (200_000.0, 266_000.0):  # 25 % less than the switch; the same within 0.5 %
        assert said[ms][1].endswith("If they sent in an order, it would save nothing.")
    assert said[400_000.0] == said[None], "nothing is gained, or nothing is known"
    assert said[None][0] == "" and "order" not in said[None][1]
    fixed = row(question, "fixed", 300_000.0, 0.0)  # $8 an hour: 2/3
    rows = (tree, switch, fixed)
    ordered = with_orders_of(rows[:1], replace(computed, iteration_ms=320_000.0), tree)
    answer = Answer(question, rows, in_order=ordered, verdict=verdict(question, rows))
    assert "Order of sending" not in dict(details(answer)), "fixed circuits cost less anyway"
    assert with_orders_of(rows, computed, tree).iteration_ms == 200_000.0, "as circuits do"


def test_a_full_fat_tree_whose_hosts_send_in_order_is_as_fast_as_the_switch(
    answered: Answer,
) -> None:
    assert answered.in_order is not None and answered.in_order.network_usd is not None
    assert answered.in_order.iteration_ms == answered.verdict.offer.iteration_ms == 10.0
    assert "would take at most **10" in dict(details(answered))["Order of sending"]


def test_the_break_even_delay_wins_below_and_loses_above(answered: Answer) -> None:
    wins_ms, slowest = answered.turned.slowest.wins_ms, answered.turned.slowest
    assert answered.verdict.wins and wins_ms < slowest.loses_ms <= 1.02 * wins_ms
    slow = [one for one in answered.searched if one.choice.degree == 1]
    assert len(slow) > 9
    for one in slow:
        won = beats(lead(answered.question, one, answered.verdict.rival))
        assert won == (float(one.choice.values[DELAY]) <= wins_ms)


def test_at_the_break_even_price_both_cost_the_same(answered: Answer) -> None:
    question, found, turned = answered.question, answered.verdict, answered.turned
    for factor, sign in ((1.0, 0), (0.99, 1), (1.01, -1)):
        priced = question.at_price(found.offer, factor * turned.highest_usd)
        gain = lead(question, priced, found.rival)
        assert gain == pytest.approx(0.0, abs=1e-12) if sign == 0 else gain * sign > 0


def test_more_delay_never_makes_an_iteration_cheaper_and_fixed_circuits_are_never_faster(
    answered: Answer,
) -> None:
    for rows in (answered.rows, answered.searched):
        planned = [one for one in rows if one.choice.values["fabric"] == "scheduled"]
        planned.sort(key=lambda one: float(one.choice.values[DELAY]))
        times = [one.iteration_ms for one in planned]
        assert times == sorted(times)
    times_of = {one.choice.key: one.iteration_ms for one in answered.rows}
    assert max(times_of["plzt"], times_of["piezo"]) <= times_of["fixed"] * (1 + 1e-12)
    costs = [answered.question.cost(one) for one in planned]
    assert costs == sorted(costs)


def test_the_tornado_swings_round_the_lead(answered: Answer) -> None:
    found, by_name = answered.verdict, {one.name: one for one in answered.swings}
    port, hour = by_name["Price of a switch port"], by_name["GPU, per hour"]
    assert port.low[1] > found.lead > port.high[1]
    assumed = replace(answered.question.assumed, usd_per_gpu_hour=Estimate(4, 4, 4))
    dear = replace(answered.question, assumed=assumed)
    assert hour.high == ("$4", lead(dear, found.offer, found.rival))
    spans = [abs(one.low[1] - one.high[1]) for one in answered.swings if one.low and one.high]
    assert spans == sorted(spans, reverse=True)


@pytest.mark.parametrize(
    ("ask", "line"),
    [
        (lambda job: Question(job, by="speed"), "field by: must be one of"),
        (lambda job: Question(job, degrees=(0,)), "field ports: must be whole numbers from 1"),
        (lambda job: Question(job, degrees=tuple(range(1, 10))), "field ports: has 9 values"),
        (lambda job: Question(job, rivals=()), "field rivals: must name some of"),
        (lambda job: Question(job, ()), "field offers: must have at least one"),
        (lambda _: Question(resolve(Subject("tdm"))), "has no task graph"),
        (lambda _: Assumptions(Estimate(1, 2, 1e9)), "usd_per_gpu_hour"),
        (lambda _: Assumptions(gpus_per_server=0), "gpus_per_server"),
        (lambda _: Assumptions(years=Estimate(0, 4, 6)), "years"),
    ],
)
def test_a_question_that_cannot_be_is_one_line(
    race: Resolved, ask: Callable[[Resolved], object], line: str
) -> None:
    assert line in refusal(ask, race)


def test_the_seven_have_the_published_delays_and_ports_and_say_where_figures_come_from() -> None:
    for one, published in zip(OFFERS, TECHNOLOGIES, strict=True):
        assert (one.key, one.delay_ms.usual) == (published.key, published.reconfiguration_ms)
        assert one.ports.usual == published.radix
        assert all(figure.source for figure in map(one.figure, FIGURES))
    prices = {
        one.key: one.port_usd.usual for one in OFFERS if one.port_usd.provenance == "published"
    }
    assert prices == {"piezo": 520.0, "robotic": 2 * 100.0 + 25.0}  # no paper prints another one's


def test_a_usual_value_beyond_its_range_moves_the_end_and_becomes_assumed() -> None:
    changed = offer_of(with_edit(OFFERS, "piezo", "port_usd", "usual", 2_000.0), "piezo").port_usd
    found = (changed.low, changed.usual, changed.high, changed.provenance)
    assert found == (260.0, 2_000.0, 2_000.0, "assumed")
    assert changed.source.startswith("Set by hand; was 260, 520, 1040")


@pytest.mark.parametrize(
    ("field", "level", "value", "line"),
    [
        ("port_usd", "low", 600.0, "offer piezo, field port_usd: must rise from low to usual to"),
        (
            "delay_ms",
            "usual",
            -1.0,
            "offer piezo, field delay_ms.usual: must be at least 0 (got -1)",
        ),
        (
            "delay_ms",
            "usual",
            float("nan"),
            "offer piezo, field delay_ms.usual: must be a finite number",
        ),
        ("ports", "usual", 0.5, "offer piezo, field ports.usual: must be a whole number from 1"),
    ],
)
def test_a_value_that_cannot_be_is_one_line(
    field: str, level: str, value: float, line: str
) -> None:
    assert refusal(with_edit, OFFERS, "piezo", field, level, value).startswith(line)


def test_files_and_links_carry_what_was_changed_and_links_nothing_else() -> None:
    changed = with_edit(OFFERS, "mems", "delay_ms", "high", 40.0)
    assert load_offers(dump_offers(changed), "a.offers.json") == changed
    words = edits_between(OFFERS, changed)
    assert words == "mems.delay_ms:7.5:15:40"
    assert edits_between(changed, with_edits(OFFERS, words)) == ""
    for wrong in ("piezo", "piezo.speed:1:2:3", "piezo.ports:1:2", "x.ports:1:1:1"):
        refusal(with_edits, OFFERS, wrong)


def _file(*offers: dict[str, Any]) -> bytes:
    return json.dumps({"format": "topox-offers", "version": 1, "offers": list(offers)}).encode()


def test_an_offer_of_a_file_takes_from_the_published_one_what_it_does_not_say() -> None:
    (one,) = load_offers(_file({"key": "mems", "port_usd": 300}), "own.json")
    assert (one.name, one.vendor, one.delay_ms) == ("3D MEMS", "Calient", OFFERS[3].delay_ms)
    assert (one.port_usd.low, one.port_usd.high, one.port_usd.provenance) == (300, 300, "assumed")


NEW = {"key": "new", "name": "New", "delay_ms": 1, "ports": 64, "port_usd": 10, "port_w": 1}


@pytest.mark.parametrize(
    ("offers", "line"),
    [
        ([], "own.json, field offers: is empty"),
        ([3], "own.json, offer 1: must be an object in braces (got 3)"),
        ([{"key": "new", "name": "New"}], "own.json, offer new, field delay_ms: is missing"),
        ([{"key": "new"}], "own.json, offer new, field name: is missing"),
        (
            [NEW | {"prize": 1}],
            "own.json, offer new, field prize: unknown key (expected one of key",
        ),
        ([NEW, NEW], "own.json, offer new: is in the file twice"),
        ([NEW | {"ports": 0}], "own.json, offer new, field ports.usual: must be a whole number"),
        ([NEW | {"port_w": {"low": 1}}], "own.json, offer new, field port_w.usual: is missing"),
        (
            [NEW | {"port_w": {"usual": 1, "from": "me"}}],
            "own.json, offer new, field port_w.from: must be one of published, vendor, assumed",
        ),
        (
            [NEW | {"key": "a b"}],
            "own.json, offer a b, field key: must be letters, digits, - and _",
        ),
        (
            [NEW | {"delay_ms": True}],
            "own.json, offer new, field delay_ms: must be a number, or an",
        ),
    ],
)
def test_a_mistake_in_a_file_is_one_line(offers: list[Any], line: str) -> None:
    assert refusal(load_offers, _file(*offers), "own.json").startswith(line)
