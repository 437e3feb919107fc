"""Builds the program of a job: passes in order, what they exchange, gradients, updates."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from topox_core.errors import refuse_if
from topox_core.training.costs.collectives import (
    Call,
    Groups,
    Shared,
    Weights,
    gathered_ms,
    gathers_of,
    gradients_of,
    layer_exchanges,
    message,
    stage_gathers,
    stage_gradients,
    stage_update_ms,
    stage_weights,
    tied_tables,
)
from topox_core.training.iteration import Iteration, iteration
from topox_core.training.job import Job
from topox_core.training.pipeline.program import (
    PassSegment,
    Program,
    Spread,
    Step,
    Unit,
    inside_ms,
    inside_sums_ms,
    layer_units,
    layered,
    sharded,
)
from topox_core.training.plan import pass_order

Names = tuple[str, ...]
WORDS = {"f": "forward", "b": "backward"}
SPREADS = {"cp": Spread.CONTEXT, "ep": Spread.EXCHANGE}
# Ends the name of what a pass does before its first layer, where layers are steps of their own.
LAUNCH = ".launch"
NO_WEIGHTS = Weights(0.0, 0.0)
MAX_STEPS = 1_000_000
# Before the name of a pass: what ends it, which is known once it is built.
END_OF = "end of "


def program(job: Job) -> Program:
    """Return the steps of a job's iteration, one rank a stage.

    Exchanges that stay in a server are part of computing. Those that cross servers are steps: context
    and experts once after a pass with the bytes of all its layers (with FSDP after each layer), FSDP's
    gathers and scatters, gradients, messages.

    Raises
    ------
    InputError
        If there would be too many.
    """
    return ProgramBuilder(iteration(job)).program()


class ProgramBuilder:
    """Builds a program pass by pass, rank by rank, from the times of an iteration."""

    TIED = "dp"  # the parallelism that sums tied tables

    def __init__(self, one: Iteration) -> None:
        self.one, self.job = one, one.job
        self.groups = Groups.of(one.job)
        plan, order = one.job.plan, one.job.schedule
        stages = range(plan.pipeline)
        # Of each stage its passes in order: way, chunk, microbatch.
        self.passes = [
            [
                (way, local * plan.pipeline + stage, m)
                for way, m, local in pass_order(
                    stage, plan.pipeline, plan.microbatches, order.order, order.virtual
                )
            ]
            for stage in stages
        ]
        self.steps: list[Step] = []
        # Of each stage: what its next pass waits for.
        self.before: list[Names] = [() for _ in stages]
        # What ends a pass, by name of the pass.
        self.ends: dict[str, Names] = {}
        # Of each stage: the steps that add its gradients up.
        self.sums: list[Names] = [() for _ in stages]
        # Of each stage whose passes do not wait for one another: what ends its backward passes.
        self.before_sums: list[Names] = [() for _ in stages]
        # Of each stage and layer: what ends its backward passes so far.
        self.layer_ends: dict[tuple[int, int], Names] = {}
        self.sharded, self.layered = sharded(one.job), layered(one.job)
        # Of which chunks the weights are gathered, as FSDP's passes leave them.
        self.gathered = [False] * one.job.chunks
        self.backwards_left = [one.job.plan.microbatches] * one.job.chunks
        # Units of a chunk and way are the same in every pass.
        self.units: dict[tuple[int, str], list[Unit]] = {}

    def program(self) -> Program:
        """Return the program."""
        job = self.job
        units = 2 * job.chunks
        if self.sharded or self.layered:
            units = (10 if self.layered else 2) * job.shape.layers + 2
        count = 2 * units * job.plan.microbatches
        refuse_if(
            (
                count > MAX_STEPS,
                f"would take {count:,} steps for each rank of a stage, more than the limit of {MAX_STEPS:,}",
            ),
            item="plan",
            field="microbatches",
        )
        for stage, passes in enumerate(self.passes):
            for way, chunk, m in passes:
                self._pass(stage, chunk, way, m)
            self._gradients(stage)
        self._updates()
        return Program(job, tuple(map(self._resolved, self.steps)))

    def _resolved(self, step: Step) -> Step:
        """Return a step that waits for what ends a pass where it waited for its end."""
        if not any(name.startswith(END_OF) for name in step.waits):
            return step
        waits = (self.ends.get(name.removeprefix(END_OF), (name,)) for name in step.waits)
        return replace(step, waits=tuple(dict.fromkeys(one for each in waits for one in each)))

    def _add(self, step: Step) -> Names:
        self.steps.append(step)
        return (step.name,)

    def _pass(self, stage: int, chunk: int, way: str, m: int) -> None:
        """Add a pass: its units, what they exchange, and the message to the next chunk."""
        job, place = self.job, f".s{chunk}.m{m}"
        done, around_ms = self._begin(stage, chunk, way, m)
        self.backwards_left[chunk] -= way == "b"
        if self.sharded or self.layered:
            if around_ms := around_ms + job.machine.host_ms:
                launch = Unit(place + LAUNCH, around_ms, NO_WEIGHTS)
                done = self._compute(stage, way, m, launch, done)
            units = [replace(one, place=place + one.place) for one in self._units(chunk, way)]
            in_units = self._sharded_pass if self.sharded else self._layered_pass
            done = in_units(stage, chunk, way, m, units, done)
        else:
            passes = self.one.passes[chunk]
            ms = inside_ms(job, passes.forward if way == "f" else passes.backward) + around_ms
            unit = Unit(place, ms, NO_WEIGHTS, layers=job.chunk_layers[chunk])
            for piece in self._pieces(chunk, way, unit):
                done = self._compute(stage, way, m, piece, done)
                if piece is not unit:
                    self._add_up(stage, m, piece, (*done, *self.sums[stage]))
            done = self._exchange(stage, way, m, unit, done)
        self.ends[way + place] = done
        if not job.schedule.overlap_exchanges:
            self.before[stage] = done
        elif way == "b":
            self.before_sums[stage] += done
        self._send(stage, chunk, way, m, done)

    def _begin(self, stage: int, chunk: int, way: str, m: int) -> tuple[Names, float]:
        """Return what a pass waits for, and what it takes to receive and to send inside the server."""
        job, step = self.job, 1 if way == "f" else -1
        came, goes = chunk - step, chunk + step
        waits, inside = list(self.before[stage]), not self.groups.neighbours.crosses
        around_ms = 0.0
        if way == "b":
            waits += self.ends[f"f.s{chunk}.m{m}"]
        if 0 <= came < job.chunks and job.plan.pipeline > 1:
            around_ms = gathered_ms(job)
            waits.append(f"{END_OF}{way}.s{came}.m{m}" if inside else f"{way}x.s{came}.m{m}")
            # A message inside the server holds its receiver if not its sender.
            around_ms += message(job).ms(job) if inside and job.schedule.overlap_sends else 0.0
        if 0 <= goes < job.chunks and job.plan.pipeline > 1:
            holds = inside and not job.schedule.overlap_sends
            around_ms += message(job).ms(job) if holds else 0.0
        return tuple(dict.fromkeys(waits)), around_ms

    def _units(self, chunk: int, way: str) -> list[Unit]:
        """Return what a pass computes at a stretch where it exchanges layer by layer."""
        if (chunk, way) not in self.units:
            self.units[chunk, way] = layer_units(self.one, chunk, way)
        return self.units[chunk, way]

    def _compute(
        self,
        stage: int,
        way: str,
        m: int,
        unit: Unit,
        waits: Names,
        part: PassSegment | None = None,
    ) -> Names:
        """Add a unit's computing, or a part of it."""
        one = part or PassSegment("", unit.ms)
        return self._add(
            Step(
                way + one.word,
                unit.place,
                WORDS[way],
                stage,
                waits,
                one.ms,
                microbatch=m,
                layer=unit.layer,
                loaded_ms=one.loaded_ms,
            )
        )

    def _communicate(
        self, word: str, stage: int, m: int, unit: Unit, one: Call, waits: Names, **rest: Any
    ) -> Names:
        """Add a communication of a unit."""
        return self._add(
            Step(
                word,
                unit.place,
                one.kind,
                stage,
                waits,
                size_bytes=one.size_bytes,
                group=one.group,
                microbatch=m,
                layer=unit.layer,
                **rest,
            )
        )

    def _exchange(self, stage: int, way: str, m: int, unit: Unit, waits: Names) -> Names:
        """Add what the layers of a unit exchange across servers, each kind once, one after the other."""
        for one in layer_exchanges(self.job):
            calls = unit.layers * (one.forward if way == "f" else one.backward)
            if one.parallelism not in SPREADS or not calls or not one.group.crosses:
                continue
            ending = ".again" if way == "b" and one.kind == "all_gather" else ""
            waits = self._communicate(
                way + one.parallelism + ending,
                stage,
                m,
                unit,
                replace(one, size_bytes=calls * one.size_bytes),
                waits,
                spread=SPREADS[one.parallelism],
                parallelism=one.parallelism,
                calls=calls,
            )
        return waits

    def _send(self, stage: int, chunk: int, way: str, m: int, done: Names) -> None:
        """Add the message to the chunk after; unless sends overlap, the next pass waits for it."""
        job, goes = self.job, chunk + 1 if way == "f" else chunk - 1
        if not 0 <= goes < job.chunks or not self.groups.neighbours.crosses:
            return
        went = self._communicate(
            f"{way}x",
            stage,
            m,
            Unit(f".s{chunk}.m{m}", 0.0, NO_WEIGHTS),
            message(job),
            (*done, *self._awaited(goes, way, m)),
            other=goes % job.plan.pipeline,
            parallelism="pp",
        )
        if not (job.schedule.overlap_sends or job.schedule.overlap_exchanges):
            self.before[stage] = went

    def _awaited(self, chunk: int, way: str, m: int) -> Names:
        """Return what a message waits for on the side of its receiver: nothing, it need not be waiting."""
        del chunk, way, m
        return ()

    # -- layer by layer --------------------------------------------------------------------------

    def _layered_pass(
        self, stage: int, chunk: int, way: str, m: int, units: list[Unit], done: Names
    ) -> Names:
        """Add a pass whose layers exchange one by one, and whose gradients may leave it that way."""
        leaving = self._leaving(chunk, way)
        for unit in units:
            done = self._layer(stage, way, m, unit, done)
            if way == "b" and unit.layer >= 0:
                # Passes that do not wait for one another may end in any order.
                own = stage, unit.layer
                self.layer_ends[own] = ends = (*self.layer_ends.get(own, ()), *done)
                if leaving:
                    piece = replace(unit, weights=self._share_of_weights(stage))
                    waits = ends if self.job.schedule.overlap_exchanges else done
                    self._add_up(stage, m, piece, (*waits, *self.sums[stage]))
        return done

    def _layer(self, stage: int, way: str, m: int, unit: Unit, waits: Names) -> Names:
        """Add a layer's pass: computing, then its exchanges; or both in turn, where layers exchange one by one."""
        if not unit.parts:
            waits = self._compute(stage, way, m, unit, waits)
            return self._exchange(stage, way, m, unit, waits)
        for one in unit.parts:
            if one.exchange is None:
                waits = self._compute(stage, way, m, unit, waits, one)
                continue
            waits = self._communicate(
                way + one.word,
                stage,
                m,
                unit,
                one.exchange,
                waits,
                spread=SPREADS[one.exchange.parallelism],
                parallelism=one.exchange.parallelism,
                homeward=one.homeward,
            )
        return waits

    # -- FSDP ------------------------------------------------------------------------------------

    def _sharded_pass(
        self, stage: int, chunk: int, way: str, m: int, units: list[Unit], begin: Names
    ) -> Names:
        """Add a pass of FSDP: the weights of the next unit come while one computes, two are held at most."""
        gathers = self._gathers(chunk, way)
        coming = self._gather(stage, way, m, units[0], begin) if gathers else ()
        last: Names = ()
        scattered: Names = ()
        for k, unit in enumerate(units):
            ready = coming
            if gathers and k + 1 < len(units):
                waits = tuple(dict.fromkeys((*last, *ready))) or begin
                coming = self._gather(stage, way, m, units[k + 1], waits)
            last = self._layer(stage, way, m, unit, (*(last or begin), *ready))
            if way == "b" and self.job.schedule.reduce == "layer":
                scattered += self._scatter(stage, m, unit, last)
        rest = self.job.schedule.reduce
        if way == "b" and (rest == "pass" or (rest == "last" and not self.backwards_left[chunk])):
            # One ring after the other.
            for experts in (False, True):
                for unit in units:
                    scattered = self._scatter(stage, m, unit, scattered or last, (experts,))
        return (*last, *scattered)

    def _gathers(self, chunk: int, way: str) -> bool:
        """Return whether the next pass of a chunk gathers its weights; what it leaves gathered is noted."""
        schedule, whole = self.job.schedule, self.gathered[chunk]
        if schedule.reshard and not schedule.regather:
            return way == "f"
        self.gathered[chunk] = not schedule.reshard or (schedule.reduce == "last" and way == "b")
        return not whole

    def _gather(self, stage: int, way: str, m: int, unit: Unit, waits: Names) -> Names:
        found = gathers_of(self.job, unit.weights)
        return self._shared(f"{way}gather", stage, m, unit, found, waits)

    def _scatter(
        self,
        stage: int,
        m: int,
        unit: Unit,
        waits: Names,
        rings: tuple[bool, ...] = (False, True),
    ) -> Names:
        found = [one for one in gradients_of(self.job, unit.weights) if one.experts in rings]
        return self._shared("scatter", stage, m, unit, found, waits)

    def _shared(
        self, word: str, stage: int, m: int, unit: Unit, found: list[Shared], waits: Names
    ) -> Names:
        """Add what replicas share of a unit's weights across servers; return what ends it.

        FSDP calls for weights and experts at once, else one follows the other.
        """
        fsdp, begin = self.job.plan.fsdp, waits
        done: Names = ()
        for one in (each for each in found if each.group.crosses):
            added = self._communicate(
                f"{word}.experts" if one.experts else word,
                stage,
                m,
                unit,
                one,
                begin if fsdp else done or begin,
                spread=Spread.EXPERTS if one.experts else Spread.WEIGHTS,
                parallelism="fsdp" if fsdp else "dp",
            )
            done = (*done, *added) if fsdp else added
        return done or begin

    # -- the end ---------------------------------------------------------------------------------

    def _pieces(self, chunk: int, way: str, unit: Unit) -> Iterable[Unit]:
        """Return a pass in pieces, one a layer, where gradients leave it layer by layer."""
        layers = self.job.chunk_layers[chunk]
        if not self._leaving(chunk, way):
            return [unit]
        weights = self._share_of_weights(chunk % self.job.plan.pipeline)
        return [Unit(f"{unit.place}.l{k}", unit.ms / layers, weights) for k in range(layers)]

    def _leaving(self, chunk: int, way: str) -> bool:
        """Whether gradients leave a pass layer by layer, and cross servers."""
        job = self.job
        last = way == "b" and not self.backwards_left[chunk] and job.schedule.overlap_gradients
        stage = chunk % job.plan.pipeline
        return last and any(one.group.crosses for one in stage_gradients(job, stage))

    def _share_of_weights(self, stage: int) -> Weights:
        """Return what one layer's gradients are taken for: an even part of all that the stage holds."""
        held, share = stage_weights(self.job, stage), 1 / self.job.stage_layers(stage)
        return Weights(held.shared * share, held.experts * share)

    def _add_up(self, stage: int, m: int, unit: Unit, waits: Names) -> None:
        """Add the sums of a layer's gradients after those that left before it."""
        found = gradients_of(self.job, unit.weights)
        self.sums[stage] = self._shared("sum", stage, m, unit, found, waits)

    def _gradients(self, stage: int) -> None:
        """Add the sums of a stage's gradients, unless they left layer by layer; note what its updates wait for."""
        self.before[stage] += self.before_sums[stage]
        if ms := inside_sums_ms(self.one, stage):
            step = Step("sum.inside", f".s{stage}", "backward", stage, self.before[stage], ms)
            self.before[stage] = self._add(step)
        if not self.sums[stage] and not self.job.plan.fsdp:
            unit = Unit(f".s{stage}", 0.0, stage_weights(self.job, stage))
            found = gradients_of(self.job, unit.weights)
            self.sums[stage] = self._shared("sum", stage, -1, unit, found, self.before[stage])
        self.sums[stage] = tuple(dict.fromkeys((*self.before[stage], *self.sums[stage])))

    def _updates(self) -> None:
        """Add the updates, which wait for all gradients, and what is gathered after them."""
        job, last = self.job, self.job.plan.pipeline - 1
        tied_ms = self._tied()
        waits = self._needed()
        for stage in range(job.plan.pipeline):
            gathers = stage_gathers(job, stage)
            inside = [one for one in gathers if not one.group.crosses]
            ms = stage_update_ms(job, stage) + sum(one.ms(job) for one in inside)
            ms += tied_ms if stage in (0, last) else 0.0
            done = self._add(Step("u", f".s{stage}", "update", stage, waits, ms))
            unit = Unit(f".s{stage}", 0.0, stage_weights(job, stage))
            self._shared("gather", stage, -1, unit, gathers, done)

    def _tied(self) -> float:
        """Add the sum of the tied tables, which ends the gradients too; return its time if it stays in a server."""
        last = self.job.plan.pipeline - 1
        for one in tied_tables(self.job):
            if not one.group.crosses:
                return one.ms(self.job)
            done = self._communicate(
                "tied",
                0,
                -1,
                Unit("", 0.0, NO_WEIGHTS),
                one,
                self._needed((0, last)),
                other=last,
                parallelism=self.TIED,
            )
            self.sums[0] += done
            self.sums[last] += done
        return 0.0

    def _needed(self, stages: Iterable[int] | None = None) -> Names:
        """Return what ends the gradients of some stages, of all if none are named."""
        chosen = range(self.job.plan.pipeline) if stages is None else stages
        return tuple(dict.fromkeys(name for stage in chosen for name in self.sums[stage]))
