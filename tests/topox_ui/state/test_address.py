"""The address: what a link says every page shows, Back undoes, no choice and no own job is lost; what a reload finds."""

from urllib.parse import parse_qs

import pytest
import streamlit as st

from tests.topox_ui.conftest import (
    SCHEDULE,
    address,
    bring,
    buttons,
    choose,
    control,
    follow,
    press,
    turn_to,
    unbroken,
    words,
)
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.papers.catalogue import CARDS
from topox_core.workloads.samples import load_sample
from topox_ui.shell.pages import page_of
from topox_ui.state import address as address_file, session
from topox_ui.state.address import rejoin, restore

SHARING, PLANS, FIXED = "Sharing", "Plans", "Fixed circuits"
COMPARE = "Compare"
JOB = {"sample": "blackboard", "port_gbps": "40", "large": "yes"}
# What counts on each page beside the job, in a session that has chosen something on every page.
PRICES, CONTEST = {"cost.prices": "opus-v1"}, {"fabrics": "static,scheduled", "variant": "released"}
OF_PAGE = {
    "Home": PRICES,
    "Schedule": {"from_ms": "1"} | PRICES,
    "Proof": {"race_s": "30"},
    "Circuits": {"slot": "1"},
    "Compare": {"lanes_from_ms": "1", "gated": "yes"} | CONTEST | PRICES,
    "Where which wins": {"across": "degree"} | CONTEST | PRICES,
    "Fixed circuits": {"degree": "2"} | CONTEST | PRICES,
    "One collective": {"degree": "2", "members": "16"},
    "Plans": {"strategy.seed": "7", "strategy.budget": "300"},
    "Your trace": {"recorded.example": "yes", "recorded.delay_ms": "5"},
    "Sharing": {"jobs.source": "generator", "jobs.seed": "5"},
    "Rails": {"rails.source": "toy", "rails.delay_ms": "50"} | CONTEST | PRICES,
    "Cost": {"cost.pue": "2", "buy.by": "time"} | CONTEST | PRICES,
    "Network": {"cost.pue": "2"} | PRICES,
    "Which switch": {"cost.pue": "2", "buy.by": "time"} | PRICES,
    "Claims against each other": {"argument.network": "4x400"},
    "Accuracy": {},
    "Studies": {},
    "Kept runs": {"runs.kind": "schedule"},
    "Papers": {"gallery.card": next(iter(CARDS))},
    "Learn": {"learn.short": "yes", "learn.step": "3"},
    "Labs": {"lab.id": "windows", "lab.seed": "5"},
    "Glossary": {},
}


def test_back_undoes_a_choice_even_to_an_address_that_says_nothing(visit):
    at = choose(visit(PLANS), strategy_budget=300)
    assert address(at) == {"strategy.budget": "300"}
    follow(at, PLANS)
    assert control(at, "strategy_budget").value == 1_000 and address(at) == {}
    follow(at, PLANS, **{"strategy.budget": "300"})
    assert control(at, "strategy_budget").value == 300
    at = visit("Home", sample="blackboard")
    assert follow(at, "Home").session_state["loaded"].title == "blackboard", "kept"


def test_a_menu_link_drawn_before_the_last_choice_does_not_undo_it(visit):
    at = visit(FIXED, sample="blackboard")
    drawn = {"variant": "released", **address(at)}
    follow(at, FIXED, **drawn)
    choose(at, degree=2)
    choose(at, variant="published")
    follow(at, COMPARE, **drawn)
    assert address(at) == {"sample": "blackboard"}
    assert control(follow(at, FIXED, sample="blackboard", degree="2"), "degree").value == 2


def said_by(link) -> dict[str, str]:
    """What the address of a link says."""
    return {key: text for key, (text,) in parse_qs(link.proto.query_string).items()}


def test_a_link_carries_the_job_and_what_counts_on_its_page_and_says_where_it_opens(
    visit, monkeypatch
):
    chosen = {key: text for one in (JOB, *OF_PAGE.values()) for key, text in one.items()}
    at = visit(SCHEDULE, **chosen)
    assert [one.value for one in at.warning] == []
    of_page = {title: JOB | own for title, own in OF_PAGE.items()}
    for one in at.sidebar.get("page_link"):
        title = one.proto.label.strip("*")
        opens = page_of(title if title in of_page else "Home")
        assert said_by(one) == of_page[opens.title] | opens.query, title
    for title in ("Schedule", "Compare", "Cost", "Papers", "Studies", "Learn"):
        views = {one.label or one.title: one for one in page_of(title).views}
        row = [one for one in turn_to(at, title).main.get("page_link") if one.proto.label in views]
        assert row
        for one in row:
            view = views[one.proto.label]
            assert said_by(one) == of_page[view.title] | view.query, view.title
    turn_to(at, SCHEDULE)
    for host, only_here in (("127.0.0.1:8501", True), ("topox.example.org", False)):
        monkeypatch.setattr(type(st.context), "url", f"http://{host}/Schedule?a=b")
        base, _, query = unbroken(at.run()).code[0].value.partition("?")
        assert base == f"http://{host}/Schedule" and len(query) < 150
        assert parse_qs(query) == {key: [text] for key, text in of_page["Schedule"].items()}
        said = " ".join(one.value for one in at.caption)
        assert ("This address opens only on this machine." in said) == only_here


def test_choices_of_other_pages_stay_until_their_graph_is_replaced(visit):
    at = visit(FIXED, sample="blackboard", degree="2", **{"strategy.budget": "300"})
    known = at.session_state["page_states"]
    assert address(follow(at, SCHEDULE, sample="blackboard")) == {"sample": "blackboard"}
    assert (known["TopologyState"].degree, known["StrategyState"].budget) == (2, 300)
    follow(at, SCHEDULE, sample="patience")
    assert (known["TopologyState"].degree, known["StrategyState"].budget) == (None, 300)
    follow(at, SHARING, sample="patience")
    for source in ("graphs", "sample"):
        choose(at, jobs_source=source)
        assert address(at).get("jobs.source", "sample") == source


@pytest.fixture
def own(visit):
    """A session with a job of the reader's own, and a what-if on it."""
    graph, _ = load_sample("blackboard")
    at = bring(visit(way="files"), "up_graph", "mine.json", dump_graph_json(graph))
    return choose(follow(at, SCHEDULE), port_gbps=40.0)


def is_own(at) -> bool:
    """Return whether the own job is open with its what-if."""
    now = at.session_state["page_states"]["Scenario"]
    return at.session_state["loaded"].title == "blackboard" and now.source == "upload"


def test_an_address_of_another_job_asks_and_keeping_the_own_one_costs_no_choice(own):
    other = {"sample": "patience", "port_gbps": "400", "from_ms": "1"}
    for keep in (lambda: press(own, "keep_own"), lambda: follow(own, COMPARE)):
        follow(own, SCHEDULE, **other)
        asked = "This link opens Patience (sample). You have blackboard open."
        assert asked in words(own) and is_own(own) and address(own) == other
        assert own.button(key="open_other").label == "Open Patience"
        keep()
        assert "open_other" not in buttons(own) and is_own(own) and address(own) == {}
        now = own.session_state["page_states"]
        assert now["Scenario"].port_gbps == 40 and "ScheduleState" not in now
    follow(own, SCHEDULE, workload="dlrm")
    assert "(generated)" in words(own) and is_own(own)


def test_whoever_says_yes_or_clicks_on_a_sample_has_it_and_samples_do_not_ask(own):
    press(follow(own, SCHEDULE, sample="patience", port_gbps="400"), "open_other")
    assert own.session_state["loaded"].title == "patience" and "open_other" not in buttons(own)
    assert control(own, "port_gbps").value == 400
    assert own.session_state["previous"][0].title == "blackboard"
    follow(own, SCHEDULE, sample="blackboard")
    assert not is_own(own) and "open_other" not in buttons(own)
    assert own.session_state["loaded"].title == "blackboard"


def test_a_card_of_a_sample_is_an_answer_and_is_not_asked_about(own):
    press(choose(follow(own, "Home"), way="samples"), "open_patience")
    assert own.session_state["loaded"].title == "patience" and "open_other" not in buttons(own)


def joined(monkeypatch, at, before):
    """Reload a page: first it is drawn without, then with what the tab held."""

    def both(*page):
        rejoin(before)
        restore(*page)

    monkeypatch.setattr("topox_ui.shell.page.restore", both)
    unbroken(at.run())
    monkeypatch.undo()
    return at


def test_after_a_reload_choices_are_those_of_before(visit, monkeypatch):
    link = {"sample": "patience", "port_gbps": "40"}
    at = visit(**link)
    before = {name: at.session_state[name] for name in session.LASTING if name in at.session_state}
    at = joined(monkeypatch, visit(**link), before)
    assert not at.warning and at.session_state["loaded"].title == "patience"
    assert address(at) == link


def test_own_files_are_held_and_a_link_opened_in_the_same_tab_asks_and_can_be_gone_back_from(
    visit, monkeypatch
):
    connections = []
    monkeypatch.setattr(
        address_file,
        "connection",
        lambda get=address_file.connection: connections.append(get()) or connections[-1],
    )
    graph, _ = load_sample("blackboard")
    bring(visit(way="files"), "up_graph", "mine.json", dump_graph_json(graph))
    held = dict(connections[-1].tab.held)
    assert held["loaded"].graph.digest == graph.digest
    assert held["page_states"]["Scenario"].source == "upload"
    at = joined(monkeypatch, visit(sample="patience"), held)
    assert at.session_state["loaded"].graph.digest == graph.digest
    press(at, "open_other")
    assert at.session_state["loaded"].title == "patience"
    assert at.session_state["previous"][0].graph.digest == graph.digest
