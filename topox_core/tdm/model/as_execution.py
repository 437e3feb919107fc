"""A round of one pod group on the clock of all other pages: training on devices, links as circuits from port to port."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from topox_core.errors import refuse_if
from topox_core.model.cluster import Cluster
from topox_core.model.execution import Circuits, Execution
from topox_core.model.lowering.lowering import lower
from topox_core.model.task_graph import Task, TaskGraph
from topox_core.tdm.model.jobs import NOBODY, PULL, PUSH, Cycle, Jobs, Phase, Round
from topox_core.tdm.model.rounds import after_push_s, aggregates
from topox_core.tdm.model.traffic import between_pods_gbit

MS = 1000.0
BYTES = 1e9 / 8  # of a Gbit
_PARALLELISM = {"ring_all_reduce": "dp", "all_to_all": "ep"}
_WAY = {PUSH: "push", PULL: "pull"}
Link = tuple[int, int, int, int]  # from pod and port, to pod and port
Work = tuple[str, str, tuple[int, ...]]  # name and kind of tasks, and on which pods they are


def execution_of(answer: Round, pod_group: int) -> Execution:
    """Return one round of a pod group, in the steady state: what trains at its end goes on at its beginning.

    Servers are pods and devices are jobs. Jobs that share a pair of pods use its links one after
    the other, all links at once, so that a pair is done when eq. 2 says. Links of the same
    direction keep their ports from stage to stage.

    Raises
    ------
    InputError
        If there is no such pod group.
    """
    network = answer.jobs.network
    refuse_if(
        (
            not 0 <= pod_group < network.pod_groups,
            f"must be from 0 to {network.pod_groups - 1} (got {pod_group})",
        ),
        field="pod_group",
    )
    drawing = _Drawing(answer, pod_group, answer.cycle_of(pod_group))
    drawing.stages()
    drawing.computing()
    return drawing.execution()


@dataclass
class _Drawing:
    answer: Round
    pod_group: int
    cycle: Cycle
    # When each task starts and ends, in s, and the boundary that waits for it.
    tasks: list[tuple[Task, float, float, int]] = field(default_factory=list)
    # Of each link while it serves a transfer: start_s, link, setup_s, end_s, its task, and whether it changed.
    circuits: list[tuple[float, Link, float, float, str, bool]] = field(default_factory=list)

    @property
    def jobs(self) -> Jobs:
        return self.answer.jobs

    @property
    def boundaries_s(self) -> list[float]:
        """When stages begin, and the end of the last."""
        return [*(phase.start_s for phase in self.cycle.phases), self.cycle.round_s]

    def stages(self) -> None:
        """Add what is sent, stage by stage.

        The ports are those of a round that follows another one like it.
        """
        ports = _Ports(self.jobs.network.ports_per_pod)
        for _ in range(2):
            kept = [(phase, *ports.turned_to(self._links(phase))) for phase in self.cycle.phases]
        for position, (phase, links, changed) in enumerate(kept):
            for n, i, j, gbit, begin_s, end_s in self._sent(phase):
                job = self.jobs.jobs[n]
                name = f"{job.id}/{_WAY[phase.way]}/{i}-{j}"
                task = Task(
                    name,
                    "communication",
                    dependencies=(_boundary(position),),
                    source=i,
                    destination=j,
                    size_bytes=gbit * BYTES,
                    parallelism=_PARALLELISM.get(job.collective),
                    job=job.id,
                )
                self.tasks.append((task, begin_s, end_s, position + 1))
                first = begin_s == phase.start_s + phase.dark_s
                for link in links:
                    if (link[0], link[2]) == (i, j):
                        dark = first and link in changed
                        setup_s = phase.start_s if dark else begin_s
                        self.circuits.append((begin_s, link, setup_s, end_s, task.id, dark))

    def _links(self, phase: Phase) -> NDArray[np.int32]:
        if phase.group == NOBODY:
            return np.zeros(self.answer.links.shape[2:], np.int32)
        links: NDArray[np.int32] = self.answer.links[self.pod_group, phase.group]
        return links.T if phase.way == PULL and not self.answer.static else links

    def _sent(self, phase: Phase) -> Iterator[tuple[int, int, int, float, float, float]]:
        """Yield (job, from, to, Gbit, begin, end) for every transfer of a stage."""
        begin = np.full(self.answer.links.shape[2:], phase.start_s + phase.dark_s)
        links = self._links(phase)
        for n in self.jobs.of_group(self.pod_group):
            if self.answer.group[n] != phase.group:
                continue
            demand = between_pods_gbit(self.jobs.jobs[n], self.answer.reading, self.answer.rings[n])
            demand = demand.T if phase.way == PULL else demand
            for i, j in np.argwhere(demand > 0):
                end = begin[i, j] + demand[i, j] / (self.jobs.network.port_gbps * links[i, j])
                yield n, int(i), int(j), float(demand[i, j]), float(begin[i, j]), float(end)
                begin[i, j] = end

    def computing(self) -> None:
        """Add what each job computes between its turns, from the end of a turn on."""
        phases = self.cycle.phases
        turns = {(phase.group, phase.way): position for position, phase in enumerate(phases)}
        for device, n in enumerate(self.jobs.of_group(self.pod_group)):
            job, group = self.jobs.jobs[n], self.answer.group[n]
            push, pull = turns[group, PUSH], turns[group, PULL]
            seconds = after_push_s(job, self.answer.reading)
            after_push: Work
            if aggregates(job, self.answer.reading):
                name, after_push = "train", ("aggregate", "update", (job.server_pod or 0,))
            else:
                name, after_push = "train 2", ("train 1", "forward", job.pods)
            self._compute(n, device, after_push, seconds, (push + 1, pull))
            # What does not fit in before the round ends has been going on since the round began.
            tail = min(job.train_s, self.cycle.round_s - phases[pull].end_s)
            self._compute(n, device, (name, "forward", job.pods), tail, (pull + 1, len(phases)))
            rest = job.train_s - tail
            if rest > 1e-9:
                before = f"{name}, from the round before", "forward", job.pods
                self._compute(n, device, before, rest, (0, push))

    def _compute(
        self, n: int, device: int, work: Work, seconds: float, boundaries: tuple[int, int]
    ) -> None:
        """Add computing on every pod that starts at the first boundary and is over by the second."""
        if seconds <= 0:
            return
        (first, until), (name, kind, pods) = boundaries, work
        start = self.boundaries_s[first]
        for pod in pods:
            task = Task(
                f"{self.jobs.jobs[n].id}/{name}/{pod}",
                kind,
                dependencies=(_boundary(first),),
                server=pod,
                device=device,
                duration_ms=seconds * MS,
                job=self.jobs.jobs[n].id,
            )
            self.tasks.append((task, start, start + seconds, until))

    def execution(self) -> Execution:
        """Return the execution: boundaries between stages are barriers that join what ends and release what begins."""
        every = list(self.tasks)
        for position, at_s in enumerate(self.boundaries_s):
            before = [_boundary(position - 1)] if position else []
            before += [task.id for task, *_, until in self.tasks if until == position]
            mark = Task(_boundary(position), "barrier", dependencies=tuple(before))
            every.insert(position, (mark, at_s, at_s, position))
        lowered = lower(TaskGraph("", tuple(task for task, *_ in every)))
        times = {task.id: (start_s, end_s) for task, start_s, end_s, _ in every}
        start, end = (np.array([times[name][side] for name in lowered.ids]) * MS for side in (0, 1))
        return Execution(
            lowered,
            self._cluster(),
            start,
            end,
            self._circuits({name: i for i, name in enumerate(lowered.ids)}),
        )

    def _cluster(self) -> Cluster:
        network = self.jobs.network
        slot_ms = 10.0 ** np.floor(np.log10(max(self.cycle.round_s * MS, 1e-3) / 50))
        return Cluster(
            servers=network.pods_per_group,
            ports_per_server=network.ports_per_pod,
            switches=1,
            ports_per_switch=network.pods_per_group * network.ports_per_pod,
            port_gbps=network.port_gbps,
            slot_ms=float(slot_ms),
            reconfiguration_ms=network.reconfiguration_ms,
            duplex="half",
            devices_per_server=max(1, len(self.jobs.of_group(self.pod_group))),
            name=f"pod group {self.pod_group}",
        )

    def _circuits(self, node: dict[str, int]) -> Circuits:
        rows = sorted(self.circuits, key=lambda one: one[:2])
        columns = np.array([link for _, link, *_ in rows], np.int32).reshape(-1, 4)
        seconds = np.array([(setup_s, start_s, end_s) for start_s, _, setup_s, end_s, *_ in rows])
        times = seconds.reshape(-1, 3) * MS
        return Circuits(
            switch=np.zeros(len(rows), np.int32),
            source=columns[:, 0],
            destination=columns[:, 2],
            source_port=columns[:, 1],
            destination_port=columns[:, 3],
            setup_ms=times[:, 0],
            start_ms=times[:, 1],
            end_ms=times[:, 2],
            node=np.array([node[task] for *_, task, _ in rows], np.int32),
            changed=np.array([changed for *_, changed in rows], np.bool_),
        )


class _Ports:
    """Which port of a pod holds which link, from stage to stage.

    A port has one link, whichever way it goes.
    """

    def __init__(self, ports: int) -> None:
        self.ports = ports
        self.links: list[Link] = []

    def turned_to(self, links: NDArray[np.int32]) -> tuple[list[Link], set[Link]]:
        """Return the links of the next stage with their ports, and which of them are new.

        No links leave all as it is.
        """
        if not links.any():
            return self.links, set()
        missing = links.copy()
        kept = []
        for link in self.links:
            if missing[link[0], link[2]] > 0:
                missing[link[0], link[2]] -= 1
                kept.append(link)
        free = [
            sorted(
                set(range(self.ports))
                - {port for link in kept for at, port in (link[:2], link[2:]) if at == pod}
            )
            for pod in range(len(links))
        ]
        new = [
            (int(i), free[i].pop(0), int(j), free[j].pop(0))
            for i, j in np.argwhere(missing > 0)
            for _ in range(missing[i, j])
        ]
        self.links = kept + new
        return self.links, set(new)


def _boundary(position: int) -> str:
    return f"stage {position + 1} begins"
