"""What a tab finds again after a reload, and which link wins."""

from tests.topox_ui.conftest import address
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.workloads.samples import load_sample
from topox_ui.state import rejoin, session


def test_a_page_is_drawn_without_a_browser_and_remembers_what_is_loaded(visit, monkeypatch):
    connections = []
    monkeypatch.setattr(
        rejoin,
        "connection",
        lambda get=rejoin.connection: connections.append(get()) or connections[-1],
    )
    at = visit(way="files")
    graph, _ = load_sample("blackboard")
    at.file_uploader(key="up_graph").upload("mine.json", dump_graph_json(graph)).run()
    assert not at.exception
    held = connections[-1].tab.held
    assert held["loaded"].graph.digest == graph.digest
    assert held["page_states"]["Scenario"].source == "upload"


def held_by(at):
    return {name: at.session_state[name] for name in session.LASTING if name in at.session_state}


def joined(monkeypatch, visit, before, **query):
    """Open a page as a reload does: first drawn without, then with what the tab held."""
    at = visit(**query)
    monkeypatch.setattr("topox_ui.shell.page.restore", _rejoining(before))
    at.run()
    monkeypatch.undo()
    return at


def _rejoining(before):
    from topox_ui.state.address import restore

    def both(page, models):
        rejoin.rejoin(before)
        restore(page, models)

    return both


def test_after_a_reload_choices_are_those_of_before(visit, monkeypatch):
    before = held_by(visit(sample="patience", port_gbps="40"))
    at = joined(monkeypatch, visit, before, sample="patience", port_gbps="40")
    assert not at.exception and not at.warning
    assert at.session_state["loaded"].title == "patience"
    assert address(at) == {"sample": "patience", "port_gbps": "40"}


def test_a_link_opened_in_the_same_tab_wins_and_what_was_there_can_be_gone_back_to(
    visit,
    monkeypatch,
):
    at = visit(way="files")
    graph, _ = load_sample("race")
    at.file_uploader(key="up_graph").upload("mine.json", dump_graph_json(graph)).run()
    before = held_by(at)
    at = joined(monkeypatch, visit, before, sample="patience")
    assert not at.exception
    assert at.session_state["loaded"].title == "patience"
    assert at.session_state["previous"][0].graph.digest == graph.digest
