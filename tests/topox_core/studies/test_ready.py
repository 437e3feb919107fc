"""Ready studies are what pages show, as files: the same points, the same numbers."""

from __future__ import annotations

import pytest

from topox_core.economics.comparison import Question, tornado
from topox_core.economics.networks import Counting
from topox_core.economics.price_sets import DEFAULT_SET, price_set
from topox_core.fabrics.map_run import MapRun
from topox_core.fabrics.sweep import Axes, Sweep
from topox_core.runs.run import finish
from topox_core.schedule.settings import FREE, Settings
from topox_core.studies.point import StudyJob, run_cell
from topox_core.studies.ready import READY
from topox_core.studies.study import Study
from topox_core.studies.study_file import dump_study, load_study, study_of
from topox_core.studies.subject import resolve
from topox_core.workloads.samples import load_sample


def measured(study: Study, name: str) -> list[float | None]:
    job = StudyJob(resolve(study.subject))
    cells = [job.cell(study.values(point)) for point in study.points]
    return [run_cell(job, cell).measures[name] for cell in cells]


@pytest.mark.parametrize("name", READY)
def test_every_ready_study_is_a_file(name: str) -> None:
    study = READY[name].study()
    assert load_study(dump_study(study), "again") == study
    assert len(study.points) > 1


def test_the_tornado_of_the_cost_page() -> None:
    prices = price_set(DEFAULT_SET)
    question = Question(1024, prices, Counting())
    study = READY["cost-tornado"].study()
    for measure, name in (("cost", "cost_saving"), ("power", "power_saving")):
        page = tornado(question, measure=measure)
        ends = {round(end[1], 12) for row in page for end in (row.low, row.high) if end}
        ours = {round(value, 12) for value in measured(study, name) if value is not None}
        assert ends <= ours
        base = question.saving("photonic_rails", "rail_optimized", measure)
        assert measured(study, name)[0] == base


@pytest.mark.long
def test_the_crossover_map_of_compare() -> None:
    """The map passes plans on to shorter delays, so that planned circuits may be faster there, never slower."""
    graph, cluster = load_sample("race")
    delays, speeds = (0.0, 1.0, 10.0), (50.0, 200.0)
    settings = Settings.of(engine="list", free=FREE)
    result = finish(MapRun(Sweep(graph, cluster, settings, Axes(delays, speeds))))
    assert result is not None and result.points
    whole = READY["crossover-map"].record()
    axes = [
        {"key": "cluster.port_gbps", "values": list(speeds)},
        {"key": "cluster.reconfiguration_ms", "values": list(delays)},
        whole["axes"][2],
    ]
    study = study_of({**whole, "axes": axes}, "map")
    times = dict(zip(study.points, measured(study, "iteration_ms"), strict=True))
    for point in result.points:
        for fabric, outcome in point.outcomes.items():
            time = times.get((point.value, point.delay_ms, fabric))
            assert time is None or outcome.iteration_ms <= time
            assert time is None or fabric == "scheduled" or outcome.iteration_ms == time
