"""Terms in our HTML become buttons that the glossary describes, and each page explains the words that it needs most."""

import re

import pytest

from tests.conftest import long_after
from tests.topox_ui.shell.test_foreign_text import elements
from topox_core.text.glossary import entry_of, glossary
from topox_ui.shell.pages import page_of
from topox_ui.shell.terms import explanations, with_terms

BUTTON = re.compile(
    r'<button type="button" class="term" aria-describedby="term-([\w-]+)">(.*?)</button>'
)


def terms(html: str) -> list[tuple[str, str]]:
    return BUTTON.findall(with_terms(html))


def test_the_first_use_in_a_block_is_a_button_and_the_words_stay() -> None:
    html = "A <b>slot</b> and another slot end."
    assert terms(html) == [("slot", "slot")]
    assert BUTTON.sub(r"\2", with_terms(html)) == html


@pytest.mark.parametrize(
    "html",
    [
        '<a href="slot">slot</a>',
        "<button>slot</button>",
        '<span style="slot" title="a slot">x</span>',
        "<code>slot</code>",
    ],
)
def test_links_buttons_code_and_attributes_are_left_alone_and_words_after_them_are_not(html):
    assert with_terms(html) == html
    assert terms(f"{html} slot") == [("slot", "slot")]


def test_an_entry_may_leave_its_own_words_alone() -> None:
    assert with_terms("a slot", "slot") == "a slot"


def test_whatever_a_button_names_is_on_the_page() -> None:
    texts = dict(re.findall(r'<span id="term-([\w-]+)">(.*?)</span>', explanations()))
    assert set(texts) == {entry.id for entry in glossary()}


NEEDED = {
    "Home": "ocs circuit task-graph iteration collective bound checker",
    "Schedule": "makespan bound gap status binds port-load critical-path port delay dark change engine checker rounding slot",
    "Circuits": "circuit port change switch-size",
    "Compare": "static-graph reactive provisioned scheduled fat-tree equal-cost forwarding tax dark",
    "Where which wins": "crossover",
    "Fixed circuits": "degree ring stride mutable matching topologyfinder forwarding tax all-reduce static",
    "Plans": "dp fsdp pp tp ep microbatch",
    "Sharing": "tdm round hill-climbing pod all-reduce all-to-all",
    "Rails": "rail window cdf delay provisioned reactive fsdp pp microbatch 1f1b gather-scatter",
    "Network": "transceiver patch-panel ocs fat-tree rail tornado switch-size",
    "Papers": "tax all-to-all topologyfinder fat-tree all-reduce",
}


def explained(at) -> str:
    """Return what the page sends to the browser, without the texts of all entries."""
    sent = [
        str(element.proto)
        for root in (at.main, at.sidebar)
        for element in elements(root)
        if not (element.type == "html" and element.proto.body == explanations())
    ]
    return "".join(sent).replace('\\"', '"').replace("\\'", "'")


@pytest.mark.parametrize("page", long_after(2, NEEDED))
def test_a_page_explains_the_words_it_needs_most(visit, page: str) -> None:
    # What binds is a port on one sample, a device on another; circuits that stay are among the
    # fastest on a third.
    sample = {"Schedule": "fsdp", "Compare": "llama3-8b"}.get(page, "moe")
    # Plans ranks whole plans of the loaded job; without one it searches a small model operator by operator.
    query = {"sample": sample} if page_of(page).needs_graph or page == "Plans" else {}
    if page == "Sharing":  # of all collectives; the two jobs that it begins with have one
        query = {"jobs.sample": "mix-32-pods"}
    sent = explained(visit(page, **query))
    missing = [
        name
        for name in NEEDED[page].split()
        if f'"term-{name}"' not in sent and entry_of(name).text not in sent
    ]
    assert missing == []
