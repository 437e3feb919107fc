"""A class in browsers: the word, locks kept and counted, closed pages, nobody's answers shown to another, a hostile student."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import free_port, serving
from tests.e2e.tab import Tab
from tests.labs_answered import LABS, at, solved
from tests.patience import wait_until
from topox_core.labs.classroom.answers import dump_answers, is_signed, load_answers
from topox_core.labs.classroom.class_folder import APART, ClassFolder
from topox_core.labs.classroom.student import begin, lock
from topox_core.labs.generators.generator import seed_of
from topox_ui.classroom.held import WRONG_OF_ONE

pytestmark = pytest.mark.browser

COURSE, WORD = "NET-401", "abcdef"


def own_address() -> str:
    """An address of this machine that is not the loopback; without one everybody would be the lecturer."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            pytest.skip("this machine has no address besides the loopback")
        return str(probe.getsockname()[0])


@pytest.fixture
def held(tmp_path: Path) -> Iterator[tuple[str, str, Path]]:
    """A class: the address of students, that of the lecturer, the folder."""
    port, folder = free_port(), tmp_path / "class"
    command = ["topox_ui.classroom.serve", "--course", COURSE, "--yes", "--folder", str(folder)]
    chosen = {"TOPOX_PORT": str(port), "TOPOX_CLASS_WORD": WORD}
    with serving(port, tmp_path / "class.log", *command, **chosen) as lecturer:
        yield f"http://{own_address()}:{port}", lecturer.base, folder


def try_word(tab: Tab, word: str) -> None:
    """Type a word at the door."""
    tab.page.get_by_label("Word").fill(word)
    tab.button("Go on").click()


def student(chromium: Browser, base: str, name: str) -> Tab:
    """Come in by the front page: the word, then the id on the page Labs."""
    tab = Tab(chromium.new_context(), base).open("/")
    try_word(tab, WORD)
    expect(tab.page).to_have_title("Labs · TOPO-X Workbench")
    call_oneself(tab, name)
    return tab


def call_oneself(tab: Tab, name: str) -> None:
    field = tab.page.locator(".st-key-lab_who_student input")
    field.fill(name)
    field.press("Enter")
    tab.still()


def all_labs(tab: Tab) -> Tab:
    tab.button("All labs").click()
    expect(tab.page.locator(".st-key-wall")).to_be_visible()
    return tab.still()


def predict(tab: Tab, value: int) -> None:
    """Open the lab on windows and lock its first prediction."""
    tab.page.locator(".st-key-lab_open_windows button").click()
    lock_button = tab.button("Lock my prediction")
    expect(lock_button).to_be_visible()
    field = tab.page.locator('[class*="st-key-lab_windows"] input').first
    field.fill(str(value))
    field.press("Enter")
    lock_button.click()


def test_a_lock_is_kept_and_counted_and_seen_by_nobody_else(chromium: Browser, held) -> None:
    students, lecturer, folder = held
    ada = student(chromium, students, "ada")
    predict(ada, 17)
    seed = seed_of(COURSE, "ada")
    expect(ada.page).to_have_url(f"{students}/Learn?view=labs&lab.id=windows&lab.seed={seed}")
    file = folder / "windows" / f"{seed:08d}.answers.json"
    wait_until(file.exists)
    kept = load_answers(file.read_bytes(), file.name)
    prediction = kept.answers.prediction("P1")
    assert prediction is not None and prediction.value == 17
    assert is_signed(kept, ClassFolder(folder).secret)

    # Another browser with the same id begins anew: it sees no lock, writes over nothing, is kept apart.
    eve = student(chromium, students, "ada")
    eve.page.locator(".st-key-lab_open_windows button").click()
    expect(eve.button("Lock my prediction")).to_be_visible()
    field = eve.page.locator('[class*="st-key-lab_windows"] input').first
    assert field.input_value() == "" and field.is_enabled()
    field.fill("99")
    field.press("Enter")
    eve.button("Lock my prediction").click()
    apart = folder / "windows" / APART / file.name
    wait_until(apart.exists)
    assert load_answers(apart.read_bytes(), apart.name).answers.prediction("P1").value == 99
    expect(eve.page.get_by_text("Saved apart").first).to_be_visible()
    assert load_answers(file.read_bytes(), file.name).answers == kept.answers

    for page in ("Present?present.lab=windows&present.q=P1&present.show=reveal", "Schedule"):
        eve.page.goto(f"{students}/{page}")
        expect(eve.headline).to_have_text("This page is not part of the class.")

    screen = Tab(chromium.new_context(viewport={"width": 1280, "height": 720}), lecturer)
    screen.open("/Learn?view=present&present.lab=windows")
    expect(screen.page.locator(".word")).to_have_text(WORD)
    screen.open("/Learn?view=present&present.lab=windows&present.q=P1&present.show=tally")
    expect(screen.page.locator(".advice")).to_contain_text("1 answer")
    for tab in (ada, eve, screen):
        assert tab.complaints == []
        tab.context.close()


@pytest.mark.long
def test_one_hostile_student_among_thirty_costs_nobody_an_answer_or_their_place(
    chromium: Browser, held, tmp_path: Path
) -> None:
    students, lecturer, path = held
    lab, folder = LABS["windows"], ClassFolder(path)
    names = [f"s{k:02d}" for k in range(29)]
    (path / "roster.txt").write_text("\n".join([*names, "ada"]) + "\n")
    honest = [lock(lab, begin(lab, COURSE, one, at(0)), "P1", 17, at(1)) for one in names]
    for answers in honest:
        assert not folder.keep(lab, answers, answers.student).reason

    # Wrong words, until no more are asked; somebody at the same address comes in all the same.
    guesser = Tab(chromium.new_context(), students).open("/")
    for k in range(WRONG_OF_ONE + 1):
        try_word(guesser, f"guess{k}")
        guesser.still()
    expect(guesser.page.get_by_text("Too many wrong words")).to_be_visible()
    eve = student(chromium, students, names[0])

    # Another's id: begun anew, and a finished file made elsewhere.
    predict(eve, 99)
    expect(eve.page.get_by_text("Saved apart").first).to_be_visible()
    forged = tmp_path / "forged.answers.json"
    forged.write_bytes(dump_answers(solved(lab, names[1]), {}))
    all_labs(eve).upload("lab_file_answers", forged)
    expect(eve.page.locator(".lab-strip")).to_be_visible()
    # More ids than a device has, none of them of this class.
    for k in range(4):
        call_oneself(all_labs(eve), f"made-up-{k}")
        predict(eve, k)
        expect(eve.page.get_by_text("Saved apart").first).to_be_visible()

    ada = student(chromium, students, "ada")
    predict(ada, 17)
    expect(ada.page.get_by_text("Saved").first).to_be_visible()
    kept = {one.student: one for one in folder.answers_to(lab.id)}
    assert kept.keys() == {*names, "ada"}
    assert [kept[one.student] for one in honest] == honest
    assert {one.student for one in folder.apart()} >= {names[0], "made-up-0", "made-up-3"}
    screen = Tab(chromium.new_context(), lecturer)
    screen.open("/Learn?view=present&present.lab=windows&present.q=P1&present.show=tally")
    expect(screen.page.locator(".advice")).to_contain_text("30 answers")
    for tab in (guesser, eve, ada, screen):
        assert tab.complaints == []
        tab.context.close()
