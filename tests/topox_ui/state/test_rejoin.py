"""What a tab finds again after a reload, and which link wins."""

from tests.topox_ui.conftest import address, bring, press, unbroken
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.workloads.samples import load_sample
from topox_ui.state import rejoin, session
from topox_ui.state.address import restore


def joined(monkeypatch, at, before):
    """Reload a page: first it is drawn without, then with what the tab held."""

    def both(*page):
        rejoin.rejoin(before)
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
        rejoin,
        "connection",
        lambda get=rejoin.connection: connections.append(get()) or connections[-1],
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
