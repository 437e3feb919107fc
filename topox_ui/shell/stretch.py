"""The stretch of a long chart that is in view: a slider with two ends, whose choice the link keeps."""

from __future__ import annotations

from topox_ui.state.address import keep_address
from topox_ui.state.page_state import PageState
from topox_ui.state.store import choose, state_of
from topox_ui.state.widgets import control

STEPS = 200


def stretch_in_view(
    model: type[PageState], whole_ms: float, share: float, form: str
) -> tuple[float, float]:
    """Draw the slider of a page whose state has ``from_ms`` and ``to_ms``; return begin and end in ms.

    Parameters
    ----------
    share
        Of the whole, what is in view at first.
    form
        How the ends are written, such as ``%.1f ms``.
    """
    now = state_of(model).model_dump()
    low, high = now["from_ms"] or 0.0, now["to_ms"] or whole_ms * share
    step = whole_ms / STEPS
    view = (min(low, whole_ms - step), min(max(high, low + step), whole_ms))
    control(
        "slider",
        "Stretch in view",
        model,
        "from_ms",
        value=view,
        min_value=0.0,
        max_value=whole_ms,
        step=step,
        take=lambda ends: choose(model, from_ms=ends[0], to_ms=ends[1]),
        format=form,
        label_visibility="collapsed",
    )
    keep_address()
    return view
