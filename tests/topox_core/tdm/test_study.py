"""The study of gain: paired seeds, spread, and cells that run anywhere and are kept."""

import concurrent.futures
from typing import Any

import pytest

from topox_core.errors import InputError
from topox_core.runs.run import finish
from topox_core.tdm.mixes.deployment import SetUp
from topox_core.tdm.model.round import TdmSettings
from topox_core.tdm.study import (
    BASELINE,
    Study,
    StudyAxes,
    StudyCellResult,
    StudyRow,
    run_cell,
)

SMALL = SetUp(pod_groups=2, pods_per_group=4, ports_per_pod=8, degree_max=6)


def study(**changes: object) -> Study:
    chosen = {
        "axes": StudyAxes((4, 8), (8192, 131072)),
        "seeds": (0, 1, 2),
        "algorithms": ("hill-climbing", "all-train"),
        "setup": SMALL,
    }
    return Study(**{**chosen, **changes})  # type: ignore[arg-type]


def computed(of: Study, known: dict[str, StudyCellResult] | None = None) -> list[StudyRow]:
    """Compute a study in threads of this process."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        result = finish(of.start(known, pool))
    assert result is not None
    assert result.lost == ()
    return of.rows(result.results)


def test_every_point_has_a_row_for_every_algorithm_and_none_loses_to_the_baseline() -> None:
    rows = computed(study())
    assert len(rows) == 4 * 3
    assert {row.algorithm for row in rows} == {BASELINE, "hill-climbing", "all-train"}
    for row in rows:
        assert row.seeds == 3
        assert row.reduction.least >= -1e-9
        assert row.reduction.most == 0 or row.algorithm != BASELINE
        assert 0 <= row.gap.least <= row.gap.most < 1


def test_reductions_are_taken_seed_by_seed() -> None:
    """Their mean is the mean of ratios of the same jobs, never the ratio of means."""
    whole = study(axes=StudyAxes((8,)), seeds=(3, 4))
    results = [
        run_cell(whole.setup, whole.settings, whole.algorithms, cell) for cell in whole.cells()
    ]
    by_hand = [
        1 - one.outcomes["all-train"].round_s / one.outcomes[BASELINE].round_s for one in results
    ]
    row = next(row for row in computed(whole) if row.algorithm == "all-train")
    assert row.reduction.mean == pytest.approx(sum(by_hand) / 2)
    assert (row.reduction.least, row.reduction.most) == pytest.approx((min(by_hand), max(by_hand)))


def test_cells_that_are_known_are_not_run_again() -> None:
    kept: dict[str, StudyCellResult] = {}
    first = computed(study(), kept)
    assert computed(study(), {key: StudyCellResult({}, {}) for key in kept}) == []
    more = study(seeds=(0, 1, 2, 3))
    assert len({more.key(cell) for cell in more.cells()} - set(kept)) == 4
    assert [row.round_s for row in computed(study(), kept)] == [row.round_s for row in first]


def test_what_cannot_run_is_told() -> None:
    crowded = study(
        axes=StudyAxes((4,)),
        seeds=(0,),
        setup=SetUp(pod_groups=1, pods_per_group=4, ports_per_pod=1, degree_max=6),
    )
    result = run_cell(crowded.setup, crowded.settings, crowded.algorithms, crowded.cells()[0])
    assert result.outcomes == {}
    assert set(result.failed) == set(crowded.algorithms)
    assert computed(crowded) == []


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"seeds": ()}, "seeds"),
        ({"seeds": (1, 1)}, "seeds"),
        ({"algorithms": ("magic",)}, "algorithms"),
        ({"settings": TdmSettings(starts=-1)}, "starts"),
        ({"seeds": tuple(range(600))}, "2,400 points"),
        ({"axes": ((), (1,))}, "field jobs"),
        ({"axes": ((4, 4), (1,))}, "field jobs"),
        ({"axes": ((4,), ())}, "field context"),
    ],
)
def test_bad_studies_are_refused_by_field(changes: dict[str, Any], field: str) -> None:
    with pytest.raises(InputError, match=field):
        study(**changes | ({"axes": StudyAxes(*changes["axes"])} if "axes" in changes else {}))
