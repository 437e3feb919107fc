"""What can be chosen on the view Circuits beside the what-ifs."""

from topox_ui.state.session import Index, PageState


class CircuitsState(PageState):
    """The slot in view, and the switch whose ports are drawn; None draws all switches."""

    of_graph = True

    slot: Index | None = None
    switch: Index | None = None
