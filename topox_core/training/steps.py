"""Builds the program of a job: passes in order, what they exchange, gradients, updates."""

from collections.abc import Iterable
from dataclasses import replace

from topox_core.training.collectives import (
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
from topox_core.training.plan import pass_order
from topox_core.training.program import Program, Spread, Step, check_size
from topox_core.training.units import (
    GatheredChunks,
    PassSegment,
    Unit,
    inside_ms,
    inside_sums_ms,
    layer_units,
    layered,
    sharded,
    stretches,
)

Names = tuple[str, ...]
WORDS = {"f": "forward", "b": "backward"}
# Before the name of a pass: what ends it, which is known once it is built.
_END_OF = "end of "


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
    return _Builder(iteration(job)).program()


class _Builder:
    def __init__(self, one: Iteration) -> None:
        self.one, self.job = one, one.job
        self.groups = Groups.of(one.job)
        stages = range(one.job.plan.pipeline)
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
        self.gathered = GatheredChunks(one.job)
        self.backwards_left = [one.job.plan.microbatches] * one.job.chunks

    def program(self) -> Program:
        """Return the program."""
        job = self.job
        units = 2 * job.chunks
        if self.sharded or self.layered:
            units = (10 if self.layered else 2) * job.shape.layers + 2
        check_size(2 * units * job.plan.microbatches)
        for stage in range(job.plan.pipeline):
            order = pass_order(
                stage,
                job.plan.pipeline,
                job.plan.microbatches,
                job.schedule.order,
                job.schedule.virtual,
            )
            for way, m, local in order:
                self._pass(stage, local * job.plan.pipeline + stage, way, m)
            self._gradients(stage)
        self._updates()
        return Program(job, tuple(map(self._resolved, self.steps)))

    def _resolved(self, step: Step) -> Step:
        """Return a step that waits for what ends a pass where it waited for its end."""
        if not any(name.startswith(_END_OF) for name in step.waits):
            return step
        waits = (self.ends.get(name.removeprefix(_END_OF), (name,)) for name in step.waits)
        return replace(step, waits=tuple(dict.fromkeys(one for each in waits for one in each)))

    def _add(self, step: Step) -> Names:
        self.steps.append(step)
        return (step.name,)

    def _pass(self, stage: int, chunk: int, way: str, m: int) -> None:
        """Add a pass: its units, what they exchange, and the message to the next chunk."""
        job, place = self.job, f".s{chunk}.m{m}"
        begin, came_ms = self._begin(stage, chunk, way, m)
        ms = self._computing_ms(chunk, way) + came_ms
        self.backwards_left[chunk] -= way == "b"
        if self.sharded:
            done = self._sharded_pass(stage, chunk, way, m, (begin, ms))
        elif self.layered:
            done = self._layered_pass(stage, chunk, way, m, (begin, ms))
        else:
            done, unit = begin, Unit(place, ms, Weights(0.0, 0.0))
            for piece in self._pieces(chunk, way, unit):
                done = self._compute(stage, way, m, piece, done)
                if piece is not unit:
                    self._add_up(stage, m, piece, (*done, *self.sums[stage]))
            done = self._exchange(stage, way, m, (place, job.chunk_layers[chunk], -1), done)
        self.ends[way + place] = done
        if not job.schedule.overlap_exchanges:
            self.before[stage] = done
        elif way == "b":
            self.before_sums[stage] += done
        self._send(stage, chunk, way, m, done)

    def _begin(self, stage: int, chunk: int, way: str, m: int) -> tuple[Names, float]:
        """Return what a pass waits for, and what it takes to receive a message."""
        job, came = self.job, chunk - 1 if way == "f" else chunk + 1
        waits = list(self.before[stage])
        if way == "b":
            waits += self.ends[f"f.s{chunk}.m{m}"]
        if not 0 <= came < job.chunks or job.plan.pipeline == 1:
            return tuple(dict.fromkeys(waits)), 0.0
        took_ms = gathered_ms(job)
        if self.groups.neighbours.crosses:
            waits.append(f"{way}x.s{came}.m{m}")
        else:
            waits.append(f"{_END_OF}{way}.s{came}.m{m}")
            took_ms += message(job).ms(job) if job.schedule.overlap_sends else 0.0
        return tuple(dict.fromkeys(waits)), took_ms

    def _computing_ms(self, chunk: int, way: str) -> float:
        """Return a pass without what is a step of its own; a message inside the server holds its sender."""
        job, passes = self.job, self.one.passes[chunk]
        ms = inside_ms(job, passes.forward if way == "f" else passes.backward)
        goes = chunk + 1 if way == "f" else chunk - 1
        sends = 0 <= goes < job.chunks and job.plan.pipeline > 1
        if sends and not (self.groups.neighbours.crosses or job.schedule.overlap_sends):
            ms += message(job).ms(job)
        return ms

    def _compute(self, stage: int, way: str, m: int, unit: Unit, waits: Names) -> Names:
        return self._add(
            Step(
                way,
                unit.place,
                WORDS[way],
                stage,
                waits,
                unit.ms,
                microbatch=m,
                layer=unit.layer,
            )
        )

    def _exchange(
        self,
        stage: int,
        way: str,
        m: int,
        where: tuple[str, int, int],
        waits: Names,
        chosen: Names = ("cp", "ep"),
    ) -> Names:
        """Add what the layers of a pass exchange across servers, each chosen parallelism once, one after the other."""
        place, layers, layer = where
        for kind, parallelism, spread in (
            ("all_gather", "cp", Spread.CONTEXT),
            ("all_to_all", "ep", Spread.EXCHANGE),
        ):
            found = [one for one in layer_exchanges(self.job) if one.parallelism == parallelism]
            calls = [one.forward if way == "f" else one.backward for one in found]
            if parallelism not in chosen or not any(calls) or not found[0].group.crosses:
                continue
            size = sum(layers * n * one.size_bytes for n, one in zip(calls, found, strict=True))
            waits = self._add(
                Step(
                    f"{way}{parallelism}",
                    place,
                    kind,
                    stage,
                    waits,
                    size_bytes=size,
                    group=found[0].group,
                    spread=spread,
                    calls=layers * sum(calls),
                    parallelism=parallelism,
                    microbatch=m,
                    layer=layer,
                )
            )
        return waits

    def _send(self, stage: int, chunk: int, way: str, m: int, done: Names) -> None:
        """Add the message to the chunk after; unless sends overlap, the next pass waits for it."""
        job, goes = self.job, chunk + 1 if way == "f" else chunk - 1
        if not 0 <= goes < job.chunks or not self.groups.neighbours.crosses:
            return
        sent = message(job)
        went = self._add(
            Step(
                f"{way}x",
                f".s{chunk}.m{m}",
                "send",
                stage,
                done,
                size_bytes=sent.size_bytes,
                group=sent.group,
                other=goes % job.plan.pipeline,
                parallelism="pp",
                microbatch=m,
            )
        )
        if not (job.schedule.overlap_sends or job.schedule.overlap_exchanges):
            self.before[stage] = went

    # -- layer by layer --------------------------------------------------------------------------

    def _layered_pass(
        self, stage: int, chunk: int, way: str, m: int, begun: tuple[Names, float]
    ) -> Names:
        """Add a pass whose layers exchange one by one, and whose gradients may leave it that way."""
        done, ms = begun
        leaving = self._leaving(chunk, way)
        for unit in layer_units(self.one, chunk, way, f".s{chunk}.m{m}", ms):
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
        if unit.layer < 0:
            return self._compute(stage, way, m, unit, waits)
        if not self.layered:
            waits = self._compute(stage, way, m, unit, waits)
            return self._exchange(stage, way, m, (unit.place, 1, unit.layer), waits)
        for one in stretches(self.one, way, unit):
            if one.parallelism == "ep":
                waits = self._travel(stage, way, m, unit, one, waits)
            elif one.parallelism:
                waits = self._exchange(stage, way, m, (unit.place, 1, unit.layer), waits, ("cp",))
            else:
                waits = self._add(
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
        return waits

    def _travel(
        self, stage: int, way: str, m: int, unit: Unit, one: PassSegment, waits: Names
    ) -> Names:
        """Add the tokens' way to the experts or home, unless it stays in the server."""
        found = next((each for each in layer_exchanges(self.job) if each.parallelism == "ep"), None)
        if found is None or not found.group.crosses:
            return waits
        return self._add(
            Step(
                way + one.word,
                unit.place,
                found.kind,
                stage,
                waits,
                size_bytes=found.size_bytes,
                group=found.group,
                spread=Spread.EXCHANGE,
                parallelism="ep",
                microbatch=m,
                layer=unit.layer,
                homeward=one.homeward,
            )
        )

    # -- FSDP ------------------------------------------------------------------------------------

    def _sharded_pass(
        self, stage: int, chunk: int, way: str, m: int, begun: tuple[Names, float]
    ) -> Names:
        """Add a pass of FSDP: the weights of the next unit come while one computes, two are held at most."""
        begin, ms = begun
        units = layer_units(self.one, chunk, way, f".s{chunk}.m{m}", ms)
        gathers = self.gathered.needed(chunk, way)
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
            for unit in units:
                scattered = self._scatter(stage, m, unit, scattered or last)
        return (*last, *scattered)

    def _gather(self, stage: int, way: str, m: int, unit: Unit, waits: Names) -> Names:
        found = gathers_of(self.job, unit.weights)
        return self._shared(f"{way}gather", stage, m, unit, found, waits)

    def _scatter(self, stage: int, m: int, unit: Unit, waits: Names) -> Names:
        found = gradients_of(self.job, unit.weights)
        return self._shared("scatter", stage, m, unit, found, waits)

    def _shared(
        self, word: str, stage: int, m: int, unit: Unit, found: list[Shared], waits: Names
    ) -> Names:
        """Add what replicas share of a unit's weights across servers, one after the other; return the last of them."""
        parallelism = "fsdp" if self.job.plan.fsdp else "dp"
        for one in (each for each in found if each.group.crosses):
            waits = self._add(
                Step(
                    f"{word}.experts" if one.experts else word,
                    unit.place,
                    one.kind,
                    stage,
                    waits,
                    size_bytes=one.size_bytes,
                    group=one.group,
                    spread=Spread.EXPERTS if one.experts else Spread.WEIGHTS,
                    parallelism=parallelism,
                    microbatch=m,
                    layer=unit.layer,
                )
            )
        return waits

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
        waits = self._needed()
        tied_ms = 0.0
        for one in tied_tables(job):
            if one.group.crosses:
                step = Step("tied", "", one.kind, 0, self._needed((0, last)), 0.0, one.size_bytes)
                waits += self._add(replace(step, group=one.group, other=last, parallelism="dp"))
            else:
                tied_ms = one.ms(job)
        for stage in range(job.plan.pipeline):
            gathers = stage_gathers(job, stage)
            inside = [one for one in gathers if not one.group.crosses]
            ms = stage_update_ms(job, stage) + sum(one.ms(job) for one in inside)
            ms += tied_ms if stage in (0, last) else 0.0
            done = self._add(Step("u", f".s{stage}", "update", stage, waits, ms))
            unit = Unit(f".s{stage}", 0.0, stage_weights(job, stage))
            self._shared("gather", stage, -1, unit, gathers, done)

    def _needed(self, stages: Iterable[int] | None = None) -> Names:
        """Return what ends the gradients of some stages, of all if none are named."""
        chosen = range(self.job.plan.pipeline) if stages is None else stages
        return tuple(dict.fromkeys(name for stage in chosen for name in self.sums[stage]))
