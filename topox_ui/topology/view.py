"""Fixed circuits: what they make of a job, how TopologyFinder lays them; and one collective on circuits that change inside it."""

from topox_core.figures.palette import Theme
from topox_ui.answers.case import case_of
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.downloads import graph_kept_here, link_menu
from topox_ui.shell.page import size_switch
from topox_ui.state.loading import Loaded, scenario
from topox_ui.state.widgets import sidebar_part
from topox_ui.topology.headline import ports_line, topology_headline
from topox_ui.topology.inside import KICKER, inside_one_collective
from topox_ui.topology.laying import controls, degree_slider, lay
from topox_ui.topology.player import link_table, player
from topox_ui.topology.searched import searched, searched_topology
from topox_ui.topology.state import TopologyState


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Fixed circuits."""
    with show_input_errors(f"Fixed circuits · {opened.title}"):
        case = case_of(opened, scenario())
    controls(case)
    size_switch()
    if TopologyState.now().layout_by == "topoopt":
        with show_input_errors(f"Fixed circuits · {opened.title}"):
            laid = lay(case)
        topology_headline(opened, case, laid)
        player(laid, theme)
        ports_line(laid)
        link_table(laid)
    else:
        with show_input_errors(f"Fixed circuits · {opened.title}"):
            answer, topoopt_ms = searched(case)
        searched_topology(opened, case, answer, topoopt_ms, theme)
    link_menu(graph_kept_here())


def draw_collective(theme: Theme, opened: Loaded) -> None:
    """Draw the view One collective."""
    with show_input_errors(f"{KICKER} · {opened.title}"):
        case = case_of(opened, scenario())
    with sidebar_part("What if"):
        degree_slider(case)
    size_switch()
    inside_one_collective(case, theme)
    link_menu(graph_kept_here())
