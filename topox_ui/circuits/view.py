"""Circuits: which circuit every port holds in every slot, and what the switches must be told."""

from dataclasses import replace

from topox_core.figures.circuits import changes, matrix, ports_over_time
from topox_core.figures.palette import Theme
from topox_core.model.measures import SlotState, slot_state
from topox_core.schedule.circuits.standing import standing
from topox_ui.answers.case import case_of
from topox_ui.answers.solving import best, drawn, token
from topox_ui.circuits.slot_view import slot_in_view, slot_view
from topox_ui.circuits.state import CircuitsState
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.downloads import result_files
from topox_ui.shell.page import headline, size_switch
from topox_ui.state.loading import Loaded, cluster_words, scenario
from topox_ui.state.store import reader_of
from topox_ui.state.what_ifs import what_ifs


def draw(theme: Theme, opened: Loaded) -> None:
    """Draw the view Circuits."""
    what_ifs(opened)
    size_switch()
    with show_input_errors(f"Circuits · {opened.title}"):
        case = case_of(opened, scenario())
        result = best(case)
    if result.execution is not None:
        result = replace(result, execution=standing(result.execution))
    if result.execution is None or not len(result.execution.circuits):
        headline(
            f"Circuits · {cluster_words(case.cluster)}",
            "<b>No data crosses the network</b> here, so no circuit is needed. Pick another job on Home.",
        )
        return

    parts = drawn(token(case, result), result)
    slot_view(opened, case, result, parts, theme)
    execution = result.execution

    chosen = reader_of(CircuitsState)

    def state() -> SlotState:
        """Return the slot in view when a figure is asked for."""
        return slot_state(execution, slot_in_view(execution, chosen()))

    result_files(
        opened,
        result,
        {
            "Circuits": lambda look: matrix(execution, state(), look),
            "Ports over time": lambda look: ports_over_time(execution, state(), None, look),
            "Changes": lambda look: changes(execution, state(), look),
        },
    )
