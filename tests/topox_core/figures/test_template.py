"""What every chart shares."""

import json

import numpy as np
import plotly.graph_objects as go

from topox_core.figures.palette import theme_of
from topox_core.figures.template import frame


def test_a_copy_of_a_figure_is_the_same_figure_for_plotly() -> None:
    """Streamlit draws a figure and then a copy of it; what plotly would take for a change is drawn twice."""
    lengths = np.array([1.0, 2.0, 3.0])
    figure = go.Figure(go.Bar(x=lengths, y=np.arange(3), base=lengths, width=lengths))
    sent = json.loads(frame(figure, theme_of("light"), 100).to_json())
    assert "template" not in sent["layout"]
    assert sent["layout"]["datarevision"]
    (bars,) = sent["data"]
    assert [bars[name] for name in ("x", "y", "base", "width")] == [
        [1, 2, 3],
        [0, 1, 2],
        [1, 2, 3],
        [1, 2, 3],
    ]
