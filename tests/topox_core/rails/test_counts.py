"""How many windows an iteration has: the formula, every stage by enumeration, and what a simulated iteration shows."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from topox_core.errors import InputError
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.counts import phases_of_stage, windows_by_formula, windows_by_stage
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS


def test_the_formula_gives_the_published_127_windows_at_32_microbatches() -> None:
    assert windows_by_formula(32) == 127
    assert windows_by_stage(16, 32, "afab")[0] == 127


def test_strict_1f1b_has_other_counts_than_the_formula_at_its_edges() -> None:
    counts = windows_by_stage(16, 32, "1f1b")
    assert (counts[0], set(counts[1:-1]), counts[-1]) == (95, {129}, 65)


def test_the_phases_of_the_papers_figure_3a() -> None:
    first, last = (phases_of_stage(2, 2, "1f1b", stage) for stage in (0, 1))
    assert first == ["fsdp", "pp", "fsdp", "pp", "fsdp", "pp", "fsdp", "sync"]
    assert last == ["pp", "fsdp", "pp", "fsdp", "pp", "sync"]
    assert windows_by_stage(2, 2) == [7, 5]
    assert windows_by_formula(2) == 7


@given(st.integers(2, 9), st.integers(1, 24))
def test_enumeration_agrees_with_the_closed_forms(stages: int, microbatches: int) -> None:
    first = 2 * microbatches + 2 * min(stages, microbatches) - 1
    inside = [4 * microbatches + 1] * (stages - 2)
    assert windows_by_stage(stages, microbatches, "1f1b") == [first, *inside, 2 * microbatches + 1]
    edge = 4 * microbatches - 1
    assert windows_by_stage(stages, microbatches, "afab") == [edge, *inside, edge]


@given(st.integers(1, 12), st.sampled_from(["1f1b", "afab"]))
def test_without_a_pipeline_only_the_optimizer_interrupts(microbatches: int, schedule: str) -> None:
    assert windows_by_stage(1, microbatches, schedule) == [1]


@given(st.integers(2, 6), st.integers(1, 4), st.integers(2, 4))
def test_interleaved_stages_in_the_middle_have_a_window_around_every_pass(
    stages: int, rounds: int, chunks: int
) -> None:
    microbatches = stages * rounds
    counts = windows_by_stage(stages, microbatches, "interleaved", chunks)
    passes = 2 * microbatches * chunks
    # Every pass gathers between two transfers, which merge with those of the next pass.
    assert counts[1:-1] == [2 * passes + 1] * (stages - 2)
    # Edges begin and end where the model does: passes without a transfer on one side merge nothing,
    # or merge whole passes.
    assert all(count <= 2 * passes - 1 for count in (counts[0], counts[-1]))


@pytest.mark.parametrize("schedule", ["1f1b", "afab"])
def test_a_simulated_iteration_shows_as_many_windows_on_every_rank(schedule: str) -> None:
    preset = PRESETS["llama3-8b-perlmutter"].changed(
        pipeline=4, data=2, gpus=32, microbatches=6, schedule=schedule, iteration_ms=None
    )
    iteration = build(preset, by_layer=False)
    run = simulate(iteration, Rail(optical=False, nic_gbps=preset.nic_gbps))
    expected = windows_by_stage(4, 6, schedule)
    for rank in range(iteration.ranks):
        assert (
            sum(window.rank == rank for window in run.windows)
            == expected[int(iteration.stage[rank])]
        )


@pytest.mark.parametrize(
    ("call", "says"),
    [
        (lambda: windows_by_formula(0), "settings, field microbatches: must be at least 1 (got 0)"),
        (lambda: windows_by_stage(0, 4), "settings, field stages: must be at least 1 (got 0)"),
        (
            lambda: windows_by_stage(4, 4, "gpipes"),
            "settings, field schedule: 'gpipes': unknown schedule",
        ),
        (
            lambda: windows_by_stage(4, 6, "interleaved"),
            "settings, field microbatches: must be a multiple of the 4 stages",
        ),
        (
            lambda: windows_by_stage(1000, 10_000),
            "settings: 1,000 stages and 10,000 microbatches make 20,000,000 passes",
        ),
        (lambda: phases_of_stage(4, 4, "1f1b", 4), "settings, field stage: must be 0 to 3 (got 4)"),
    ],
)
def test_bad_settings_are_told_in_one_line(call: object, says: str) -> None:
    with pytest.raises(InputError) as told:
        call()  # type: ignore[operator]
    assert str(told.value).startswith(says)
