"""Plans: how to split a model over servers, searched operator by operator, or ranked plan by plan."""

from topox_core.figures.palette import Theme
from topox_ui.shell.charts import show_input_errors
from topox_ui.shell.page import size_switch
from topox_ui.strategy.controls import pick_model, pick_request
from topox_ui.strategy.fabric_run import FabricSearch
from topox_ui.strategy.fabric_view import fabric_view
from topox_ui.strategy.plans import pick_machine, plans_view
from topox_ui.strategy.search_view import search_view


def draw(theme: Theme) -> None:
    """Draw the page."""
    model, way, servers = pick_model()
    if way == "plans" and model.shape is not None:
        with show_input_errors():
            machine, batch = pick_machine(model)
            size_switch()
            plans_view(model, machine, servers, batch, theme)
        return

    with show_input_errors():
        graph = model.build(servers)
        request = pick_request(graph, servers)
    size_switch()
    with show_input_errors():
        if isinstance(request, FabricSearch):
            fabric_view(request, theme)
        else:
            search_view(model, request, theme)
