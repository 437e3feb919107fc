"""What the cards on photonic rails and the lecture count on: jitter, rails side by side, the break-even delay."""

import numpy as np
import pytest

from tests.topox_core.papers.answers import run, value
from topox_core.errors import InputError
from topox_core.papers.cards.lecture_technologies import GRID_MS, NEVER_MS, break_even_ms
from topox_core.papers.cards.opus_rails import together
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.iteration import COMPUTE, Rail
from topox_core.rails.measured import jittered, pass_factors
from topox_core.rails.presets import PRESETS


def test_jitter_keeps_the_mean_and_is_one_draw_a_pass():
    iteration = build(PRESETS["llama3-8b-perlmutter"])
    assert jittered(iteration, 0.0, 3).duration_ms.tolist() == iteration.duration_ms.tolist()
    factors, again = (pass_factors(iteration, 0.1, 3) for _ in range(2))
    assert factors.tolist() == again.tolist()
    assert set(factors[iteration.kind != COMPUTE]) == {1.0}
    one = (iteration.kind == COMPUTE) & (iteration.rank == 0) & (iteration.microbatch == 0)
    for work in range(2):
        assert len(set(factors[one & (iteration.work == work)])) == 1
    drawn = np.concatenate([pass_factors(iteration, 0.1, seed) for seed in range(300)])
    logs = np.log(drawn[np.tile(iteration.kind == COMPUTE, 300)])
    assert np.exp(logs).mean() == pytest.approx(1, abs=0.01)
    assert logs.std() == pytest.approx(0.1, rel=0.1)


@pytest.mark.parametrize("spread", [-0.1, 1.5, float("nan")])
def test_a_spread_that_cannot_be_and_no_jobs_are_told_in_one_line(spread):
    with pytest.raises(InputError, match="spread: must be from 0 to 1"):
        pass_factors(build(PRESETS["toy"]), spread, 0)
    with pytest.raises(InputError, match="field jobs: at least one job is needed"):
        together([])


# --- constraints, rails, jobs


def test_jobs_side_by_side_run_as_they_do_alone():
    preset = PRESETS["llama3-8b-perlmutter"]
    jobs = [jittered(build(preset), 0.05, 1), build(PRESETS["toy"])]
    for provisioned in (True, False):
        rail = Rail(reconfiguration_ms=25.0, provisioned=provisioned)
        alone = [simulate(job, rail) for job in jobs]
        shared = simulate(together(jobs), rail)
        ends = np.concatenate([own.end_ms for own in alone])
        assert shared.end_ms == pytest.approx(ends, abs=1e-6)
        assert shared.reconfigurations == sum(own.reconfigurations for own in alone)
        assert len(shared.windows) == sum(len(own.windows) for own in alone)


def test_rails_drift_apart_with_the_spread_of_their_passes():
    drift = value("opus-rails", "drift", "each rail for itself")
    even, wide = (run("opus-rails", spread=one).of("drift")[0].ours for one in (0.0, 0.05))
    assert even == 0 < drift < wide
    assert value("opus-rails", "coupled", "iteration over slowest rail alone") >= 1


# --- TopoOpt, TOPO-X and the lecture


def test_the_break_even_delay_keeps_the_limit_and_the_next_does_not():
    assert break_even_ms(lambda delay: 10 + delay, 20) == max(d for d in GRID_MS if d <= 10.1)
    assert break_even_ms(lambda delay: 30 + delay, 20) == NEVER_MS
    assert break_even_ms(lambda delay: 5, 20) == GRID_MS[-1]
