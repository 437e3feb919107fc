"""The page Labs in a browser: a whole lab by keyboard, nothing that tells a key before its lock, locks that hold."""

import json
import re
from pathlib import Path

import pytest
from playwright.sync_api import Locator, expect

from tests.e2e.conftest import NewTab
from tests.e2e.tab import Tab, saved
from tests.labs_answered import EXPLANATION, answered, right
from topox_core.labs.classroom.answers import dump_answers, load_answers
from topox_core.labs.classroom.grading import grade
from topox_core.labs.generators.generator import seed_of
from topox_core.labs.lab import Lab
from topox_core.labs.lab_file import ready_labs

pytestmark = pytest.mark.browser
LABS = ready_labs()
SIX, TAX = LABS["six-tasks"], LABS["bandwidth-tax"]


def open_lab(tab: Tab, lab: Lab, seed: int, screen: int = 1) -> Tab:
    return tab.open(f"/Learn?view=labs&lab.id={lab.id}&lab.seed={seed}&lab.q={screen}")


def go_on_from(tab: Tab, lab: Lab, seed: int, screens: int, folder: Path) -> None:
    """Go on from a file in which the first screens are answered."""
    file = folder / f"{lab.id}.answers.json"
    file.write_bytes(dump_answers(answered(lab, seed, screens), {}))
    tab.as_new().open("/Learn?view=labs")  # else the lab of the way before may still be open
    tab.upload("lab_file_answers", file)
    expect(tab.page.locator(".lab-strip")).to_be_visible()
    tab.still()


def write(tab: Tab, where: Locator, text: str) -> None:
    tab.reach(where)
    tab.page.keyboard.press("ControlOrMeta+a")
    tab.page.keyboard.type(text)
    tab.page.keyboard.press("Tab")
    tab.still()


def press(tab: Tab, key: str) -> None:
    tab.reach(tab.page.locator(f".st-key-{key} button"))
    tab.page.keyboard.press("Enter")
    tab.still()


def entry(tab: Tab, name: str) -> Locator:
    """Return the field of a question, such as ``P1``, or of a part of it, such as ``W1_a``."""
    return tab.page.locator(f'[class*="st-key-lab_"][class*="_{name}-"] :is(input, textarea)').first


def choose(tab: Tab, name: str, place: int) -> None:
    """Mark one of the options of a choice: the first with the space bar, others with the arrow keys."""
    options = tab.page.locator(f'[class*="_{name}-"] input[type=radio]')
    tab.reach(options.first)
    tab.page.keyboard.press("Space")
    tab.still()
    for at in range(place):
        tab.reach(options.nth(at))
        tab.page.keyboard.press("ArrowDown")
        tab.still()
    expect(options.nth(place)).to_be_checked()


def starts(tab: Tab, name: str, times: dict[str, float]) -> None:
    for task, start in times.items():
        field = tab.page.locator(f'[class*="_{name}_{task}-"] input').first
        write(tab, field, f"{start:g}")


@pytest.mark.long
def test_a_lab_from_its_card_to_its_file_by_keyboard_alone(tab: Tab, tmp_path: Path) -> None:
    course, student = "NET-401", "keyboard"
    seed = seed_of(course, student)
    tab.open("/Learn?view=labs")
    for name, text in (("course", course), ("student", student)):
        write(tab, tab.page.locator(f".st-key-lab_who_{name} input"), text)
    press(tab, "lab_open_six-tasks")
    expect(tab.kicker).to_contain_text("screen 1 of 9")
    for screen in SIX.screens:
        for question in screen.questions:
            value = right(SIX, question, seed)
            if question.type == "schedule":
                if question.id == "W1":
                    starts(tab, "W1", {**value, "y": value["x"]})
                    press(tab, "lab_check")
                    expect(tab.page.get_by_text("eq. 8")).to_be_visible()
                starts(tab, question.id, value)
            elif question.type == "choice":
                ids = [option.id for option in question.options]
                choose(tab, question.id, ids.index(value))
            elif question.type == "text":
                write(tab, entry(tab, question.id), EXPLANATION)
            else:
                write(tab, entry(tab, question.id), str(value))
        button = {"predict": "lab_lock", "work": "lab_check", "explain": "lab_save"}
        if screen.stage in button:
            press(tab, button[screen.stage])
        if screen.stage in ("predict", "work"):  # locked, or right: its button is gone
            expect(tab.page.locator(f".st-key-{button[screen.stage]}")).to_have_count(0)
        if screen is not SIX.screens[-1]:
            press(tab, "lab_next")
            at = SIX.screens.index(screen) + 2
            expect(tab.kicker).to_contain_text(f"screen {at} of {len(SIX.screens)}")
            tab.still()
    mine = saved(tab.page, tmp_path, lambda: press(tab, "lab_download"))
    file = load_answers(mine.read_bytes(), "mine.answers.json")
    graded = grade(SIX, file, "mine.answers.json")
    assert graded.remarks == ()
    assert (graded.predictions, graded.worked) == (3, 13)
    expect(tab.page.get_by_text("16 of 16 points so far")).to_be_visible()


def test_nothing_tells_a_key_before_its_lock_and_everything_does_after(
    new_tab: NewTab, tmp_path: Path
) -> None:
    """The bandwidth tax of seed 2: 1.2283 with three ports, 1.5748 with two, which nothing else is."""
    tab = new_tab()
    frames: list[bytes] = []

    def hear(socket) -> None:
        socket.on(
            "framereceived",
            lambda data: frames.append(data if isinstance(data, bytes) else data.encode()),
        )

    tab.page.on("websocket", hear)
    go_on_from(tab, TAX, 2, 4, tmp_path)
    open_lab(tab, TAX, 2, 5)

    def told(text: str) -> bool:
        stored = tab.page.evaluate(
            "JSON.stringify({...sessionStorage}) + JSON.stringify({...localStorage})"
        )
        everywhere = tab.page.content() + tab.page.url + stored
        number = re.compile(rf"(?<![\d.-]){re.escape(text)}")  # no part of a coordinate
        found = (everywhere, *(frame.decode("latin-1") for frame in frames))
        return any(number.search(one) for one in found)

    assert frames
    assert not told("1.228") and not told("1.574")
    entry(tab, "W5").fill("2")
    entry(tab, "W5").press("Tab")
    tab.still()
    tab.page.locator(".st-key-lab_check button").click()
    expect(tab.page.get_by_text("attempts left")).to_be_visible()
    assert not told("1.228")
    tab.button("Show me the answer").click()
    expect(tab.page.get_by_text("The answer: 1.228")).to_be_visible()
    assert told("1.228") and not told("1.574")


def test_a_lock_holds_over_back_reload_other_pages_and_in_a_second_tab(
    tab: Tab, new_tab: NewTab
) -> None:
    open_lab(tab, LABS["crossover"], 7_001, 2)
    entry(tab, "P1").fill("4,5")
    entry(tab, "P1").press("Tab")
    tab.still()
    tab.button("Lock my prediction").click()
    expect(entry(tab, "P1")).to_be_disabled()
    expect(entry(tab, "P1")).to_have_value("4.5")
    tab.button("Next").click()
    expect(tab.kicker).to_contain_text("screen 3 of 9")
    tab.button("Back").click()
    expect(entry(tab, "P1")).to_be_disabled()
    tab.still().page.reload()
    tab.still()
    expect(entry(tab, "P1")).to_be_disabled()
    tab.go_to("Glossary")
    tab.go_to("Labs")
    expect(entry(tab, "P1")).to_be_disabled()
    assert "4.5" not in tab.page.url
    second = open_lab(new_tab(), LABS["crossover"], 7_001, 2)
    expect(entry(second, "P1")).to_be_disabled()
    other = open_lab(new_tab(), LABS["crossover"], 7_002, 2)
    expect(entry(other, "P1")).to_be_enabled()
    expect(entry(other, "P1")).to_have_value("")


def handed_in(tab: Tab, folder: Path, question: str, points: int) -> object:
    """Check an answer that is right, and return what the saved file says of it; then begin again."""
    tab.still().page.locator(".st-key-lab_check button").click()
    expect(tab.page.get_by_text(f"Right: {points} points")).to_be_visible()
    record = json.loads(saved(tab.page, folder, lambda: press(tab, "lab_download")).read_bytes())
    tab.button("Begin again").click()
    # Who leaves before the click has come to the server finds the old answers again.
    expect(tab.page.locator(".st-key-wall")).to_be_visible()
    tab.still()
    return record["answers"][question]["attempts"][-1]["value"]


def marks(tab: Tab) -> Locator:
    return tab.page.locator('[class*="_W3-"] [role=checkbox]')


@pytest.mark.long
def test_a_grid_by_mouse_and_by_keyboard_gives_the_same_file(tab: Tab, tmp_path: Path) -> None:
    seed, values = 7_003, []
    grid = right(TAX, TAX.question("W3"), seed)
    pairs = [(i, j) for i, row in enumerate(grid) for j, mark in enumerate(row) if mark and i < j]
    for way in ("mouse", "keyboard"):
        go_on_from(tab, TAX, seed, 2, tmp_path)
        open_lab(tab, TAX, seed, 3)
        if way == "mouse":
            for i, j in pairs:
                marks(tab).nth(i * len(grid) + j).click()
        else:
            marks(tab).first.focus()
            at = (0, 0)
            for i, j in pairs:
                for _ in range(abs(i - at[0])):
                    tab.page.keyboard.press("ArrowDown" if i > at[0] else "ArrowUp")
                for _ in range(abs(j - at[1])):
                    tab.page.keyboard.press("ArrowRight" if j > at[1] else "ArrowLeft")
                tab.page.keyboard.press("Space")
                at = (i, j)
        checked = tab.page.locator('[class*="_W3-"] [role=checkbox][aria-checked=true]')
        expect(checked).to_have_count(2 * len(pairs))
        tab.page.wait_for_timeout(300)  # the grid tells the server a moment after the last mark
        values.append(handed_in(tab, tmp_path, "W3", 4))
    assert values[0] == values[1] == grid


@pytest.mark.long
def test_start_times_by_dragging_and_by_fields_give_the_same_file(tab: Tab, tmp_path: Path) -> None:
    seed, values = 7_004, []
    best = right(SIX, SIX.question("W1"), seed)
    for way in ("fields", "dragging"):
        go_on_from(tab, SIX, seed, 1, tmp_path)
        open_lab(tab, SIX, seed, 2)
        late = {"z": best["z"] + 3} if way == "dragging" else {}
        starts(tab, "W1", {**best, **late})
        if way == "dragging":
            drag(tab, "z", -3)
            last = tab.page.locator('[class*="_W1_z-"] input').first
            expect(last).to_have_value(f"{best['z']:g}")
        values.append(handed_in(tab, tmp_path, "W1", 5))
    assert values[0] == values[1] == best


def drag(tab: Tab, task: str, by_ms: float) -> None:
    """Drag a bar of the hand Gantt chart along its axis by some ms."""
    tab.still()
    # A chart is drawn twice: its plot may be away for a moment.
    spot = tab.page.wait_for_function(
        """task => {
          const chart = [...document.querySelectorAll('.st-key-lab_hand .js-plotly-plot')].at(-1);
          const plot = chart?.querySelector('.nsewdrag');
          if (!plot) return null;
          const box = plot.getBoundingClientRect();
          const {xaxis, yaxis} = chart.layout;
          const share = (axis, value) => (value - axis.range[0]) / (axis.range[1] - axis.range[0]);
          for (const trace of chart.data) {
            const k = trace.customdata.findIndex(one => one[0] === task);
            if (k < 0) continue;
            const x = box.left + box.width * share(xaxis, trace.base[k] + trace.x[k] / 2);
            const y = box.top + box.height * (1 - share(yaxis, trace.y[k]));
            return [x, y, box.width / (xaxis.range[1] - xaxis.range[0])];
          }
          return null;
        }""",
        arg=task,
    )
    x, y, per_ms = spot.json_value()
    tab.page.mouse.move(x, y)
    tab.page.mouse.down()
    tab.page.mouse.move(x + by_ms * per_ms / 2, y, steps=3)
    tab.page.mouse.move(x + by_ms * per_ms, y, steps=3)
    tab.page.mouse.up()


@pytest.mark.long
def test_a_screen_opens_at_its_top_whatever_was_scrolled_to(tab: Tab, tmp_path: Path) -> None:
    lab = LABS["crossover"]
    go_on_from(tab, lab, 7_006, 4, tmp_path)
    open_lab(tab, lab, 7_006, 3)
    scrolled = "one => [one.scrollTop, one.scrollHeight - one.clientHeight]"
    main = tab.page.get_by_test_id("stMain")
    for press_next in (True, False):
        main.evaluate("one => one.scrollTo(0, one.scrollHeight)")
        assert main.evaluate(scrolled)[0] > 100
        tab.page.locator(f".st-key-lab_{'next' if press_next else 'back'} button").click()
        expect(tab.kicker).to_contain_text(f"screen {4 if press_next else 3} of 9")
        expect(tab.headline).to_be_focused()
        tab.still()
        assert main.evaluate(scrolled)[0] == 0
