"""Folding symmetric replicas changes what is stored, not what happens."""

from __future__ import annotations

import numpy as np
from hypothesis import given

from tests.conftest import examples
from tests.topox_core.rails.test_traffic import SMALL, jobs
from topox_core.rails.builder import build
from topox_core.rails.folding import equal_groups, unfolded_size
from topox_core.rails.iteration import COMPUTE, SEND, RailIteration, Spread
from topox_core.rails.presets import PRESETS, Preset


def issued(iteration: RailIteration, rank: int) -> list[int]:
    return iteration.issue_idx[iteration.issue_ptr[rank] : iteration.issue_ptr[rank + 1]].tolist()


def waits(iteration: RailIteration, node: int) -> list[int]:
    return iteration.pred_idx[iteration.pred_ptr[node] : iteration.pred_ptr[node + 1]].tolist()


@examples(40)
@given(jobs())
def test_every_rank_does_what_its_representative_does(job: Preset) -> None:
    folded, whole = build(job, fold=True), build(job)
    assert folded.ranks == job.pipeline
    assert whole.ranks == job.ranks == folded.stands_for.sum()
    assert (whole.stands_for == 1).all()
    for rank in range(whole.ranks):
        stage = rank // job.replicas
        assert (whole.stage[rank], whole.replica[rank]) == (stage, rank % job.replicas)
        mine, its = issued(whole, rank), issued(folded, stage)
        assert [whole.label[node] for node in mine] == [folded.label[node] for node in its]
        for column in ("kind", "duration_ms", "size_bytes", "microbatch", "layer"):
            assert (getattr(whole, column)[mine] == getattr(folded, column)[its]).all()
        place, its_place = ({node: i for i, node in enumerate(of)} for of in (mine, its))
        for node, other in zip(mine, its, strict=True):
            if whole.kind[node] != COMPUTE:
                group, one = whole.groups[whole.group[node]], folded.groups[folded.group[other]]
                assert (group.parallelism, len(group.ranks)) == (one.parallelism, one.size)
            # What a rank's node waits for of its own is what its representative's node waits for of
            # its own.
            own = {place[one] for one in waits(whole, node) if one in place}
            assert own == {its_place[one] for one in waits(folded, other) if one in its_place}


@examples(25)
@given(jobs())
def test_a_collective_waits_for_all_of_its_ranks_and_for_nobody_else(job: Preset) -> None:
    whole = build(job)
    for node in np.flatnonzero((whole.kind != COMPUTE) & (whole.kind != SEND)):
        members = set(whole.groups[whole.group[node]].ranks)
        computed = [
            int(whole.rank[one]) for one in waits(whole, int(node)) if whole.kind[one] == COMPUTE
        ]
        assert set(computed) in (members, set())


def test_groups_by_hand() -> None:
    """Two replicas of context, four of data, experts shared by two: ranks are numbered context first."""
    job = PRESETS["mixtral-8x7b"].changed(gpus=64, pipeline=1, data=4, context=2, expert=2)
    group_of_replica = equal_groups(job)
    assert {spread: group_of_replica[spread].tolist() for spread in Spread} == {
        Spread.REPLICA: [0, 1, 2, 3, 4, 5, 6, 7],
        Spread.WEIGHTS: [0] * 8,
        Spread.CONTEXT: [0, 0, 1, 1, 2, 2, 3, 3],
        Spread.EXCHANGE: [0, 1, 0, 1, 2, 3, 2, 3],
        Spread.EXPERTS: [0, 0, 1, 1, 0, 0, 1, 1],
    }
    ranks = {group.name: group.ranks for group in build(job).groups}
    assert ranks["ep.s0.3"] == (5, 7)
    assert ranks["experts.s0.1"] == (2, 3, 6, 7)


def test_sizes_are_known_before_unfolding() -> None:
    for job in (SMALL, PRESETS["llama3-8b-perlmutter"]):
        whole = build(job)
        assert unfolded_size(build(job, fold=True), job) == (len(whole), len(whole.pred_idx))
