"""Labs read aloud, at 200 %, and in a language that is 40 % longer: everything has a name, nothing is cut."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import NewTab, free_port, serving
from tests.e2e.page_checks import at_rest, cut, findings, what_stays
from tests.e2e.tab import LAPTOP, Tab
from tests.e2e.test_labs import LABS, go_on_from, open_lab
from topox_core.labs.lab import BASE, Lab, texts_in
from topox_core.labs.tour import SCREENS

pytestmark = [pytest.mark.long, pytest.mark.browser]
# A laptop's window when everything is twice as large.
ZOOMED = {"width": LAPTOP["width"] // 2, "height": LAPTOP["height"] // 2}
# How a reader finds the field of each type of question.
ROLES = {
    "number": "textbox",
    "choice": "radiogroup",
    "multi": "checkbox",
    "matrix": "table",
    "grouping": "radiogroup",
    "schedule": "spinbutton",
    "text": "textbox",
}
# Of the page, without the menu: what can be used and what is drawn must have a name. The layers of a
# chart have none of their own: they lie within its figure, which has.
NAMELESS = re.compile(
    r"^\s*- (button|link|textbox|spinbutton|checkbox|radio|slider|figure|table)\s*(\[[^\]]*\]\s*)*:?$"
)


def aloud(tab: Tab) -> str:
    """Return the page as a screen reader has it, without the menu."""
    return str(tab.page.get_by_test_id("stMain").aria_snapshot())


@pytest.mark.parametrize("lab", LABS.values(), ids=list(LABS))
def test_the_first_screen_of_a_lab_is_read_aloud_whole(tab: Tab, lab: Lab) -> None:
    """What a person who does not see the page is told: where they are, what is given, what is asked, what became of it."""
    open_lab(tab, lab, 7_020)
    said = aloud(tab)
    assert [line for line in said.splitlines() if NAMELESS.match(line)] == [], said
    stage = texts_in(BASE).say(f"page.stage.{lab.screens[0].stage}")
    assert f"Screen 1 of {len(lab.screens)}: {stage}, not done, you are here" in said
    expect(tab.page.get_by_role("heading", level=1)).to_have_count(1)
    main = tab.page.get_by_test_id("stMain")
    for question in lab.screens[0].questions:
        named = re.compile(rf"\b{question.id}\b") if question.type in ("number", "choice") else None
        field = main.get_by_role(ROLES[question.type], name=named)  # type: ignore[arg-type]
        expect(field.first).to_be_visible()
    charts = tab.page.locator(".js-plotly-plot")
    assert main.get_by_role("figure").filter(has=charts).count() == charts.count()
    assert charts.count() or main.get_by_role("table").count(), "what is given is neither"
    predicts = lab.screens[0].stage == "predict"
    tab.button("Lock my prediction" if predicts else "Check").click()
    expect(main.get_by_role("alert")).to_contain_text("first")  # and at once
    assert findings(tab.still()) == []
    assert what_stays(at_rest(tab.in_window(LAPTOP["width"], "dark")), findings) == []


def test_what_became_of_an_answer_is_told_at_once(tab: Tab) -> None:
    open_lab(tab, LABS["crossover"], 7_021)
    status = tab.page.get_by_test_id("stMain").get_by_role("status")
    for field in tab.page.get_by_role("textbox", name=re.compile("Your answer to W")).all():
        field.fill("1")
        field.press("Tab")
        tab.still()
    tab.button("Check").click()
    expect(status.filter(has_text="✗ Not right, 2 attempts left.")).to_have_count(2)
    tab.button("Next").click()
    tab.page.get_by_role("textbox", name="Your answer to P1, ms").fill("4.5")
    tab.page.keyboard.press("Tab")
    tab.still()
    tab.button("Lock my prediction").click()
    expect(status.filter(has_text="Locked at")).to_have_count(1)


# Of a class room's network, when a screen has been opened before (docs/labs.md).
MAX_OF_A_SCREEN = 300_000


@pytest.mark.parametrize("lab", LABS.values(), ids=list(LABS))
def test_at_200_percent_no_screen_of_a_lab_is_cut_and_on_a_class_room_s_network_each_is_light(
    new_tab: NewTab, tmp_path: Path, lab: Lab
) -> None:
    """Everything that the server sends from one screen to the next, but for what a browser keeps of the app itself."""
    tab, sent = new_tab(), [0]

    def count(data: bytes | str) -> None:
        sent[0] += len(data)

    tab.page.on("websocket", lambda socket: socket.on("framereceived", count))
    tab.page.set_viewport_size(ZOOMED)
    go_on_from(tab, lab, 7_022, len(lab.screens), tmp_path)
    wrong, sizes = {}, {}
    for at in range(1, len(lab.screens) + 1):
        expect(tab.kicker).to_contain_text(f"screen {at} of")
        tab.still()
        sizes[at], sent[0] = sent[0], 0
        if found := cut(tab):
            wrong[at] = found
        if at < len(lab.screens):
            tab.page.locator(".st-key-lab_next button").click()
    assert wrong == {}
    del sizes[1]  # with it came the page itself
    assert min(sizes.values()) > 1_000, "nothing was heard"
    assert {at: size for at, size in sizes.items() if size > MAX_OF_A_SCREEN} == {}


MOVING = "() => document.getAnimations().filter((one) => one.playState === 'running').map((one) => String(one.animationName))"


def test_whoever_wants_no_motion_sees_none_in_the_tour(tab: Tab) -> None:
    tab.page.emulate_media(reduced_motion="reduce")
    for step in range(1, len(SCREENS) + 1):
        tab.open(f"/Learn?learn.step={step}")
        tab.page.wait_for_function(f"({MOVING})().length === 0")


def test_beside_a_lab_stand_no_values_of_another(tab: Tab) -> None:
    """The menu's line on the job is the only place beside a lab for such values."""
    open_lab(tab, LABS["six-tasks"], seed=1)
    beside = tab.page.get_by_test_id("stSidebar").inner_text()
    open_lab(tab, LABS["price-tag"], seed=2)
    assert tab.page.get_by_test_id("stSidebar").inner_text() == beside


# -- a language that is 40 % longer ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def longer(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A tab on a workbench in the made-up language."""
    log = tmp_path_factory.mktemp("longer") / "server.log"
    with serving(free_port(), log, "tests.e2e.longer_words") as server:
        tab = Tab(chromium.new_context(viewport=LAPTOP), server.base)
        yield tab
        tab.context.close()


PAGES = ["/Learn?view=labs", *(f"/Learn?view=labs&lab.id={name}&lab.seed=1" for name in LABS)]
PAGES += [f"/Learn?learn.step={step}" for step in range(1, len(SCREENS) + 1)]


@pytest.mark.parametrize("page", PAGES)
def test_longer_words_are_not_cut_in_labs_and_tour(longer: Tab, page: str) -> None:
    longer.as_new().in_window(390).open(page)
    assert re.search("oo|ee", longer.headline.inner_text())
    assert {width: cut(at_rest(longer.in_window(width))) for width in (390, 1366)} == {
        390: [],
        1366: [],
    }
