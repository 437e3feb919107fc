"""A class in browsers: the word, a lock kept and counted on the lecturer's screen, closed pages, nobody's answers shown to another."""

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import free_port, serving
from tests.e2e.tab import Tab
from tests.patience import wait_until
from topox_core.labs.answers_file import is_signed, load_answers
from topox_core.labs.class_folder import APART, ClassFolder
from topox_core.labs.draws import seed_of

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


def student(chromium: Browser, base: str, name: str) -> Tab:
    """Come in by the front page: the word, then the id on the page Labs."""
    tab = Tab(chromium.new_context(), base).open("/")
    tab.page.get_by_label("Word").fill(WORD)
    tab.button("Go on").click()
    expect(tab.page).to_have_title("Labs · TOPO-X Workbench")
    field = tab.page.locator(".st-key-lab_who_student input")
    field.fill(name)
    field.press("Enter")
    tab.still()
    return tab


def test_a_lock_is_kept_and_counted_and_seen_by_nobody_else(chromium: Browser, held) -> None:
    students, lecturer, folder = held
    ada = student(chromium, students, "ada")
    ada.page.locator(".st-key-lab_open_windows button").click()
    seed = seed_of(COURSE, "ada")
    expect(ada.page).to_have_url(f"{students}/Labs?lab.id=windows&lab.seed={seed}")
    ada.still()
    field = ada.page.locator('[class*="st-key-lab_windows"] input').first
    field.fill("17")
    field.press("Enter")
    ada.button("Lock my prediction").click()
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
    screen.open("/Present?present.lab=windows")
    expect(screen.page.locator(".word")).to_have_text(WORD)
    screen.open("/Present?present.lab=windows&present.q=P1&present.show=tally")
    expect(screen.page.locator(".advice")).to_contain_text("1 answer")
    for tab in (ada, eve, screen):
        assert tab.complaints == []
        tab.context.close()
