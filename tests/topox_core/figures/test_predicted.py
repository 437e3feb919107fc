"""The scatter of predicted against measured iterations shows each row once, where it belongs."""

from __future__ import annotations

import pytest

from topox_core.figures.palette import LIGHT, theme_of
from topox_core.figures.predicted import BAND, MeasuredSet, predicted_against_measured
from topox_core.training.measurements import calibration_rows, megatron_rows
from topox_core.training.validation import predicted


@pytest.fixture(scope="module")
def sets() -> list[MeasuredSet]:
    return [
        MeasuredSet("fitted to", "calibration", predicted(calibration_rows())),
        MeasuredSet("Table 5", "table", predicted(megatron_rows())),
    ]


@pytest.mark.parametrize("theme", [LIGHT, theme_of("dark")])
def test_every_row_is_a_point_at_its_measured_and_its_predicted_time(sets, theme) -> None:
    figure = predicted_against_measured(sets, theme)
    points = [trace for trace in figure.data if trace.mode == "markers"]
    drawn = sorted((x, y) for trace in points for x, y in zip(trace.x, trace.y, strict=True))
    assert drawn == sorted(
        (row.measured.measured_ms / 1e3, row.predicted_ms / 1e3) for one in sets for row in one.rows
    )
    hollow = [trace for trace in points if trace.marker.symbol == "circle-open"]
    assert sum(len(trace.x) for trace in hollow) == 55


def test_the_line_is_where_both_are_equal_and_the_band_ten_percent_of_it(sets) -> None:
    band, line = predicted_against_measured(sets, LIGHT).data[:2]
    assert list(line.x) == list(line.y)
    assert [y / x for x, y in zip(band.x, band.y, strict=True)] == pytest.approx(
        [1 + BAND, 1 + BAND, 1 - BAND, 1 - BAND]
    )
