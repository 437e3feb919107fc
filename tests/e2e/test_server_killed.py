"""The server killed in the middle of a solve, with a tab open: nothing stays behind, and the page comes back."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.e2e.conftest import Server, free_port, start_server, wait_until_it_answers
from tests.e2e.tab import LAPTOP, Tab
from tests.e2e.test_schedule import LONG, wait_for
from tests.faults.test_killed import alive, children
from tests.patience import wait_until

pytestmark = pytest.mark.browser
CONNECTED = (
    "document.querySelector('[data-testid=stApp]').dataset.testConnectionState === 'CONNECTED'"
)


@pytest.fixture
def lonely_tab(chromium: Browser) -> Iterator[Tab]:
    """A tab of a server that will not be there all the time: it may complain."""
    port = free_port()
    with chromium.new_context(viewport=LAPTOP) as context:  # type: ignore[arg-type]
        yield Tab(context, f"http://127.0.0.1:{port}")


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="needs /proc")
def test_a_killed_server_leaves_nothing_its_page_goes_on_with_the_next_and_takes_its_solver_with_it_when_closed(
    lonely_tab: Tab, tmp_path: Path
) -> None:
    tab, log, temporary = lonely_tab, tmp_path / "server.log", tmp_path / "temporary"
    temporary.mkdir()
    port = int(tab.base.rpartition(":")[2])
    started = []
    try:
        for turn in range(2):
            # With the next one a tab that is closed is soon given up.
            started.append(start_server(port, log, TMPDIR=str(temporary), TOPOX_REJOIN_S="2"))
            wait_until_it_answers(started[-1], tab.base, log)
            if turn:
                break
            tab.open(LONG).push("port_gbps")
            expect(tab.kicker).to_contain_text("400G ports")
            tab.still().prove()
            wait_for(Server(tab.base, started[0].pid, log), set(), some=True)
            below = children(started[0].pid)
            started[0].kill()
            started[0].wait()
            wait_until(lambda: not any(map(alive, below)))  # noqa: B023
            assert list(temporary.iterdir()) == []
            tab.page.wait_for_function(f"!({CONNECTED})")
        tab.page.wait_for_function(CONNECTED)
        # The new server knows nothing of the session; the address has what was chosen.
        expect(tab.kicker).to_contain_text("400G ports")
        expect(tab.still().button("Prove it")).to_be_enabled()
        tab.push("port_gbps", "Home")
        expect(tab.kicker).to_contain_text("10G ports")
        tab.still().prove()
        following = Server(tab.base, started[1].pid, log)
        wait_for(following, set(), some=True)
        tab.leave()
        wait_for(following, set(), some=False)
    finally:
        for server in started:
            server.kill()
            server.wait()
