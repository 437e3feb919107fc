"""A recorded run as it was read: its ranks, the step that stands for it, matched and on one clock."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from topox_core.errors import InputError, errors_in_file, needed, refuse_if
from topox_core.io.limits import MAX_RANKS, RECORDING
from topox_core.traces.communication import Meta, meta_of
from topox_core.traces.recorded.assembly import CutLane, assemble
from topox_core.traces.recorded.kineto import read_kineto
from topox_core.traces.recorded.matching import Clocks, Matched, align
from topox_core.traces.recorded.recording import Recording, entries_of, waits_by_order
from topox_core.traces.recorded.steps import WHOLE_FILE, RankSteps, StepOfRank, chosen_step
from topox_core.traces.recorded.waits import Waits
from topox_core.traces.run_graph import RunGraph, spans
from topox_core.traces.source import (
    ImportSettings,
    Progress,
    Refused,
    Source,
    rank_in_name,
    read_json,
    with_ranks,
)

_ATTRIBUTES = {
    "collective_name": "Collective name",
    "in_msg_nelems": "In msg nelems",
    "out_msg_nelems": "Out msg nelems",
    "in_split_size": "In split size",
    "pg_name": "Process Group Name",
    "pg_desc": "Process Group Description",
    "pg_size": "Group size",
    "global_rank_start": "Global rank start",
    "global_rank_stride": "Global rank stride",
    "dtype": "dtype",
}


@dataclass(frozen=True)
class HostTrace:
    """What a host trace says, in order.

    Attributes
    ----------
    calls
        Its communications.
    waits
        For each wait the position of the call that it waits for; -1 if that is not in the trace.
    """

    calls: tuple[Meta, ...]
    waits: tuple[int, ...]


def read_host_trace(source: Source) -> HostTrace:
    """Return what a host trace says of its communications and waits.

    Raises
    ------
    InputError
        If it is no such file.
    """
    record = read_json(source)
    nodes = record.get("nodes") if isinstance(record, dict) else None
    if not isinstance(nodes, list):
        raise InputError("holds no nodes (an execution trace has them)", file=source.name)
    named = [
        one for one in nodes if isinstance(one, dict) and one.get("name") == "record_param_comms"
    ]
    calls: list[Meta] = []
    waits: list[int] = []
    number_of: dict[int | None, int] = {}
    with errors_in_file(source.name):
        for one in sorted(named, key=_order):
            meta, number = _meta(one), _number(one)
            if meta is not None:
                number_of[number] = len(calls)
                calls.append(meta)
            elif number is not None and "wait" in (one.get("inputs") or ()):
                waits.append(number_of.get(number, -1))
    return HostTrace(tuple(calls), tuple(waits))


def _number(node: Mapping[str, Any]) -> int | None:
    """Return the number of a call or of the call that a wait is for: the first whole number of its inputs."""
    inputs = node.get("inputs")
    whole = (one for one in inputs if isinstance(one, int)) if isinstance(inputs, list) else ()
    return next(iter(whole), None)


def _order(node: Mapping[str, Any]) -> int:
    number = node.get("rf_id", node.get("id", 0))
    return number if isinstance(number, int) else 0


def _meta(node: Mapping[str, Any]) -> Meta | None:
    attributes: object = node.get("attrs")
    if isinstance(attributes, list):
        named = {
            _ATTRIBUTES[str(one["name"])]: one.get("value")
            for one in attributes
            if isinstance(one, dict) and str(one.get("name")) in _ATTRIBUTES
        }
        if named.get("Collective name"):
            return None if named["Collective name"] == "wait" else meta_of(named)
    inputs = node.get("inputs")
    if isinstance(inputs, dict):
        inputs = inputs.get("values")
    if not isinstance(inputs, list) or not inputs:
        return None
    return _positional(inputs)


def _positional(inputs: Sequence[object]) -> Meta | None:
    """Return what inputs without names say: the first text is the name, a tensor may stand first, lists last."""
    name = next((one for one in inputs if isinstance(one, str)), "")
    if name in ("", "wait", "init"):
        return None
    count, element = _tensor(inputs[0])
    at = inputs.index(name)
    splits = inputs[at + 1] if at + 1 < len(inputs) and isinstance(inputs[at + 1], list) else []
    args: dict[str, Any] = {"Collective name": name, "In split size": splits}
    if count is not None:
        args |= {"In msg nelems": count, "Out msg nelems": count, "dtype": _OF_SIZE[element]}
    return meta_of(args)


MAX_LEVELS = 4  # of lists of tensors within each other; recorders write two
_OF_SIZE = {1: "Byte", 2: "Half", 4: "Float", 8: "Double"}


def _tensor(value: object, levels: int = MAX_LEVELS) -> tuple[int | None, int]:
    """Return elements and bytes of an element of a tensor, or of a list of them together."""
    if not isinstance(value, list) or not value or not levels:
        return None, 1
    if all(isinstance(one, list) for one in value):
        parts = [_tensor(one, levels - 1) for one in value]
        known = [count for count, _ in parts if count is not None]
        return (sum(known), parts[0][1]) if len(known) == len(parts) else (None, 1)
    # [tensor, storage, offset, elements, bytes of an element, device]
    if len(value) >= 5 and all(isinstance(one, int) for one in value[3:5]) and value[4] in _OF_SIZE:
        return value[3], int(value[4])
    return None, 1


# Ends of one call that lie so far apart are not of one recording, as a share of the step.
FAR_APART_SHARE = 0.1


@dataclass(frozen=True)
class RecordedRun:
    """All ranks' steps.

    Attributes
    ----------
    ranks
        The steps of each rank's file.
    world
        Ranks of the job.
    warnings
        A sentence each.
    """

    files: tuple[str, ...]
    ranks: Mapping[int, RankSteps]
    world: int
    warnings: tuple[str, ...]


@dataclass(frozen=True)
class RunStep:
    """One step of all ranks, matched, on one clock, as a graph.

    ``clipped_ms``: segments that the recorded ends would have made negative, added up.
    """

    number: int
    steps: Mapping[int, StepOfRank]
    matched: Matched
    clocks: Clocks
    waits: Mapping[int, Waits]
    graph: RunGraph
    lanes: Mapping[int, CutLane]
    clipped_ms: float
    warnings: tuple[str, ...] = field(default=())

    @property
    def recorded_ms(self) -> float:
        """From the first begin to the last end over ranks."""
        return self.graph.recorded_ms

    def evidence(self) -> Counter[str]:
        """Return how many communications of all ranks have which evidence of what waits for them."""
        return Counter(word for one in self.waits.values() for word in one.evidence)


def read_run(
    sources: Sequence[Source],
    settings: ImportSettings,
    hosts: Sequence[Source] = (),
    progress: Progress | None = None,
) -> RecordedRun:
    """Read the profiler's files of a run, one rank a file.

    Raises
    ------
    InputError
        If a file cannot be used, tells no rank, or one that was read already.
    """
    told = _host_traces(hosts)
    recordings = (
        read_kineto(source, settings.communication, rank)
        for source, rank in with_ranks(sources, settings, progress)
    )
    return run_of(recordings, settings, told)


def run_of(
    recordings: Iterable[Recording],
    settings: ImportSettings,
    told: Mapping[int, HostTrace] | None = None,
) -> RecordedRun:
    """Return the run whose files were read, each taken as it comes.

    Parameters
    ----------
    told
        By rank what a host trace tells of its communications.

    Raises
    ------
    InputError
        If two files are of one rank, all together hold too much, or none is of the ranks asked for.
    """
    told = told or {}
    ranks: dict[int, RankSteps] = {}
    warnings: list[str] = []
    kept, files = 0, list[str]()
    world = settings.world
    for recording in recordings:
        rank, file = recording.rank, recording.file
        files.append(file)
        if settings.ranks is not None and rank not in settings.ranks:
            continue
        if rank in ranks:
            problem = f"rank {rank} was already read from {ranks[rank].recording.file}"
            raise InputError(problem, file=file)
        kept += len(recording.work) + len(recording.kernels)
        refuse_if(
            (
                kept > RECORDING.entries,
                f"all files together hold more than the {RECORDING.entries:,} activities a run may have",
            ),
            file=file,
        )
        host = told.get(rank)
        entries = entries_of(recording, host.calls if host else None)
        named = waits_by_order(recording, host.waits) if host else ()
        if host is not None and len(host.calls) != len(entries):
            named = ()
            warnings.append(
                f"{file}: the host trace has {len(host.calls)} communications, the file {len(entries)}: not used"
            )
        ranks[rank] = RankSteps(recording, entries, named)
        warnings += _warnings_of(ranks[rank])
        world = max(world, recording.world)
    refuse_if((not ranks, "none of the files is of these ranks"), file="settings", field="ranks")
    lowest = ranks[min(ranks)].recording
    refuse_if(
        (
            not any(one.recording.kernels for one in ranks.values()),
            f"has {len(lowest.work):,} kernels and no communication: a job on one GPU needs no network",
        ),
        file=lowest.file,
        kind=Refused,
    )
    world = _world(ranks, world)
    absent = sorted(set(range(world)) - set(ranks))
    if absent and not settings.symmetry:
        word, verb = ("rank", "is") if len(absent) == 1 else ("ranks", "are")
        warnings.append(
            f"{word} {spans(absent)} of {world} {verb} absent: the time others waited for them counts as transfer"
        )
    return RecordedRun(tuple(files), ranks, world, tuple(warnings))


def _host_traces(hosts: Sequence[Source]) -> dict[int, HostTrace]:
    told: dict[int, HostTrace] = {}
    for source in hosts:
        rank = rank_in_name(source.name, r"(\d+)\D*$", most=10**9)
        unnamed = "names no rank: its name must end in the rank's number"
        told[needed(rank, unnamed, file=source.name)] = read_host_trace(source)
    return told


def _world(ranks: Mapping[int, RankSteps], world: int) -> int:
    entries = (entry for one in ranks.values() for entry in one.entries)
    named = ((*(part.ranks or ()), part.peer or 0) for entry in entries for part in entry.parts)
    highest = max(max(ranks), *map(max, named), 0)
    refuse_if(
        (
            highest >= MAX_RANKS,
            f"names rank {highest:,}, more than the {MAX_RANKS:,} ranks a run may have",
        ),
        file=ranks[min(ranks)].recording.file,
    )
    return max(world, 1 + highest)


def _warnings_of(one: RankSteps) -> list[str]:
    recording = one.recording
    left = (
        f"step {spans(one.left_out)} is incomplete and left out" if one.left_out else "no step lost"
    )
    found = (
        (recording.cut, f"ends early; {recording.events:,} events were read, {left}"),
        (
            recording.repairs,
            f"values are missing in {recording.repairs} places and are read as null",
        ),
        (
            recording.unlaunched,
            f"{recording.unlaunched:,} activities were launched before the recording began and are left out",
        ),
        (
            one.numbers == (WHOLE_FILE,),
            "marks no steps: the whole file counts as one, although it may hold several",
        ),
    )
    return [f"{recording.file}: {words}" for holds, words in found if holds]


def step_of(run: RecordedRun, settings: ImportSettings, number: int | None = None) -> RunStep:
    """Return one step of a run: the one that the settings choose, or the one of that number.

    Raises
    ------
    Refused
        If the ranks' calls do not end together: not one recording.
    InputError
        If no such step is on all ranks.
    """
    chosen = chosen_step(run.ranks, settings.step) if number is None else number
    steps = {rank: one.step(chosen) for rank, one in run.ranks.items()}
    warnings = []
    first = chosen != WHOLE_FILE and not any(step.has_predecessor for step in steps.values())
    if number is None and first:
        warnings.append(
            f"the file holds no step before step {chosen}, which may therefore have begun earlier than recorded"
        )
    matched = Matched(steps, run.world)
    clocks = align(steps, matched.calls)
    warnings += [
        f"rank {rank} shares no call with other ranks: its clock is not corrected"
        for rank in clocks.alone
        if len(steps) > 1
    ]
    _check_one_recording(steps, matched, clocks)
    waits = {rank: Waits(step) for rank, step in steps.items()}
    graph, lanes, clipped_ms = assemble(
        steps, waits, matched.calls, clocks, run.world, drop_host_gaps=settings.host_gaps == "drop"
    )
    warnings += [
        f"rank {rank}: {100 * lane.overlap_us / lane.busy_us:.0f} % of the work ran on several streams at once; "
        "here all streams of a GPU are one"
        for rank, lane in lanes.items()
        if lane.overlap_us > 0.1 * max(lane.busy_us, 1e-9)
    ]
    return RunStep(chosen, steps, matched, clocks, waits, graph, lanes, clipped_ms, tuple(warnings))


def _check_one_recording(steps: Mapping[int, StepOfRank], matched: Matched, clocks: Clocks) -> None:
    longest = max(step.end_us - step.begin_us for step in steps.values())
    if clocks.largest_us > FAR_APART_SHARE * longest and len(steps) > 1:
        ends = (
            [(steps[r].entries[e].end_us - clocks.offset_us[r], r) for r, e, _ in c.places]
            for c in matched.calls
        )
        extremes = ((min(row), max(row)) for row in ends)
        (early_us, one), (late_us, other) = max(extremes, key=lambda row: row[1][0] - row[0][0])
        raise Refused(
            f"its calls end up to {(late_us - early_us) / 1000:,.0f} ms apart from those of rank {min(steps)}: "
            "not one recording, or events were left out",
            file=steps[max(one, other)].recording.file,
        )
    lost, parts = len(matched.unmatched), matched.parts
    if parts and lost > 0.01 * parts:
        more = f" (and {lost - 1:,} more)" if lost > 1 else ""
        raise Refused(matched.unmatched[0] + more)
