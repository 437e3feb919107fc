"""Plans: how to split a model over servers, searched operator by operator, or all parallel plans ranked in closed form."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.comparison.compare import EQUAL, same_time
from topox_core.figures.palette import Theme
from topox_core.figures.strategy import PLAN_PARTS, plan_bars, plan_word
from topox_core.io.cluster_file import dump_cluster
from topox_core.io.task_graph_file import dump_graph_json
from topox_core.strategy.models import Model
from topox_core.strategy.plans import Plans, RankedPlan, best_plans
from topox_core.text.numbers import count, enumeration, percent, plural, short, time, whole_percent
from topox_core.training.costs.memory import memory
from topox_core.training.iteration import iteration
from topox_core.training.job import Job, dump_job
from topox_core.training.machine import MACHINES, Machine
from topox_core.training.measured.validation import off_on, trust
from topox_core.training.pipeline.graph import suggested_cluster, task_graph
from topox_core.training.shape import Shape
from topox_ui.answers.other_times import once_used, schedule_of_loaded
from topox_ui.shell.charts import (
    Content,
    chart,
    escape,
    frame,
    headline,
    kpis,
    quiet,
    show_error,
    show_input_errors,
)
from topox_ui.shell.downloads import download_menu, use_job
from topox_ui.shell.menu import page_link
from topox_ui.state.loading import has_what_ifs, own_job
from topox_ui.state.widgets import menu, number, sidebar, slide
from topox_ui.strategy.controls import pick_model, pick_search
from topox_ui.strategy.details import loaded_job_note, strategy_link
from topox_ui.strategy.search_view import search_view
from topox_ui.strategy.state import LOADED, StrategyState

SHOWN = 8


def pick_machine(model: Model) -> tuple[Machine, int]:
    """Draw the choices in the sidebar; return the GPUs and the sequences of an iteration."""
    with sidebar():
        now, job = StrategyState.now(), own_job() if StrategyState.now().of == LOADED else None
        machines = MACHINES if job is None else {**MACHINES, job.machine.name: job.machine}
        titles = {name: one.title for name, one in machines.items()}
        first = "h100" if job is None else job.machine.name
        known = machines[
            menu(StrategyState, "machine", titles, label="GPUs", value=now.machine or first)
        ]
        gpus = slide(
            StrategyState, "gpus", (1, 2, 4, 8, 16), value=now.gpus or known.gpus_per_server
        )
        memory = number(
            StrategyState,
            "gpu_memory_gb",
            label="Memory of a GPU (GB)",
            value=known.memory_gb if now.gpu_memory_gb is None else now.gpu_memory_gb,
            step=8.0,
        )
        speed = slide(
            StrategyState,
            "gpu_gbps",
            label="Network of a GPU",
            value=now.gpu_gbps or known.nic_gbps,
        )
        batch = number(
            StrategyState,
            "batch",
            label="Sequences per iteration",
            value=now.batch or model.batch,
            step=1,
        )
    return replace(known, gpus_per_server=gpus, memory_gb=memory, nic_gbps=speed), batch


@st.cache_resource(max_entries=24, show_spinner="Ranking plans")
def _ranked(
    key: str,  # noqa: ARG001
    _shape: Shape,
    _machine: Machine,
    servers: int,
    batch: int,
    _like: Job | None,
) -> Plans:
    return best_plans(_shape, _machine, servers, batch, like=_like)


def plans_view(model: Model, machine: Machine, batch: int, servers: int, theme: Theme) -> None:
    """Draw the ranked plans; raises InputError where none fits."""
    shape = model.shape
    assert shape is not None
    gpus = plural(servers * machine.gpus_per_server, "GPU")
    kicker = (
        f"Plans · {escape(shape.title)}, {plural(shape.layers, 'layer')} · {gpus} ({machine.title})"
    )
    try:
        job = own_job()
        like = job if job is not None and job.shape == shape else None
        plans = _ranked(f"{shape}|{machine}|{like}", shape, machine, servers, batch, like)
    except InputError as error:
        headline(
            kicker,
            "<b>No plan</b> can run here: give GPUs more memory, use more servers, or change the batch.",
        )
        show_error(error)
        return
    best, own, left_out = plans.best, _own(shape, machine, servers, batch), plans.too_large
    alike = own and next((p for p in plans.ranked if plan_word(p) == plan_word(own)), None)
    if own and alike and same_time(own.total_ms, alike.total_ms):
        own = alike  # sharded as all plans are, it is one of them
    known = schedule_of_loaded(soon=True) if own else None
    there_ms = known.makespan_ms or 0.0 if known else 0.0
    slower = own is not None and not same_time(best.total_ms, own.total_ms)
    ahead_ms, coming = once_used(best.job) if there_ms and slower else (0.0, False)
    headline(kicker, _finding(plans, own, alike, (there_ms, ahead_ms), coming))
    if own is None:
        _loaded_beside(shape)
    quiet(
        "Sorted by a closed form, on packet switches where no transfer waits for a port"
        + ", which counts experts as chosen evenly" * (best.plan.skew > 0)
        + f".{_bias(machine)}"
        + " Press <b>Use this job</b>, then open <b>Schedule</b>." * (own is None or slower)
    )
    kpis(
        ("Iteration time", time(best.total_ms), "in closed form"),
        ("Of peak", percent(best.iteration.utilisation), f"{machine.tflops:,g} TFLOP/s per GPU"),
        (
            "Memory",
            f"{short(best.memory.total_bytes / 1e9)} GB",
            f"of {machine.memory_gb:g}, fullest stage",
        ),
        *(
            [("Do not fit", count(left_out), f"of {plural(plans.considered, 'plan')}")]
            * bool(left_out)
        ),
        *(
            [
                (
                    "Bubble",
                    percent(best.parts["bubble"] / best.total_ms),
                    "waiting for other stages",
                )
            ]
            * bool(best.parts["bubble"])
        ),
    )
    names = [plan_word(one) for one in plans.ranked]
    with st.container(horizontal=True, vertical_alignment="bottom", key="plan_actions"):
        at = menu(
            StrategyState,
            "plan",
            {k: f"{k + 1}. {name}" for k, name in enumerate(names)},
            label="Plan",
            width=320,
            label_visibility="collapsed",
        )
        gain = f"On Schedule an iteration takes {time(ahead_ms)}, before {time(there_ms)}. "
        _take_away(plans.ranked[at].job, gain if ahead_ms and at == 0 else "")
        strategy_link()
        if own:
            page_link("Schedule", "Schedule of the loaded job", icon=":material/arrow_forward:")
    if like and (dropped := _dropped(plans.ranked[at].job, like)):
        quiet(f"Not taken over from the loaded job: {enumeration(dropped)}.")
    fastest = plans.ranked[:SHOWN]
    called = {id(alike): "sharded alike", id(own): "loaded as is"}
    rows = called | ({} if own is alike else {id(alike): "loaded split, sharded alike"})
    shown = tuple({id(one): one for one in (*fastest, alike, own) if one}.values())
    chart(
        plan_bars(shown, theme, [called.get(id(one), "") for one in shown]),
        "plans",
        "Iteration time of the fastest plans: "
        + "; ".join(f"{plan_word(one)} {short(one.total_ms)} ms" for one in shown),
        lambda: _table(shown, rows, parts=True),
        title=(
            "Where the time goes",
            f"the {len(fastest)} fastest plans{', then the loaded split' * (len(shown) > len(fastest))}, on their busiest stage; "
            + f"1×8: 1 microbatch of 8 sequences{'; R: recomputes activations' * any(one.recomputes for one in shown)}",
        ),
    )
    with st.expander("What this rests on", key="plans_rests", type="compact"):
        _rests_on(best, machine, like)
    frame(
        _table(plans.ranked, rows),
        column_config={
            name: st.column_config.NumberColumn(format=form)
            for name, form in (
                ("iteration (ms)", "%,.1f"),
                ("memory (GB)", "%,.1f"),
                ("of peak", "percent"),
            )
        },
        title=(
            "Plans that fit the memory",
            f"the first {count(len(names))} of {count(plans.fitting)}; TP, PP, CP, EP, DP: over how many GPUs tensors, layers, "
            "sequences, experts and the batch are split"
            + f"; {count(left_out)} do not fit: they need more than {machine.memory_gb:g} GB on a GPU"
            * bool(left_out),
        ),
    )
    if StrategyState.now().of != LOADED:
        quiet(
            "Plans of this page split every layer alike. A split of its own for each operator: choose <b>operators</b> on the left."
        )


def _own(shape: Shape, machine: Machine, servers: int, batch: int) -> RankedPlan | None:
    """Return the loaded job as a plan, where it is one of so many sequences on these GPUs."""
    job = own_job()
    if job is None or (job.shape, job.machine, job.plan.batch) != (shape, machine, batch):
        return None
    if job.plan.gpus != servers * machine.gpus_per_server:
        return None
    return RankedPlan(job, iteration(job), memory(job))


def _finding(
    plans: Plans,
    own: RankedPlan | None,
    alike: RankedPlan | None,
    on_schedule: tuple[float, float],
    coming: bool,
) -> str:
    """Return the fastest plan and what it saves beside the loaded one: on Schedule once that is known, and in closed form.

    ``alike``: the loaded split, sharded as all plans are; ``on_schedule``: times in ms there of the loaded one and of the
    fastest, 0 where unknown; ``coming``: the latter is being computed.
    """
    best, takes = plans.best, time(plans.best.total_ms)
    words, near = f"<b>{escape(best.words)}</b>", _as_good(plans)
    if own is None:
        fastest = f"{words} is the fastest of {plural(plans.fitting, 'plan')} that fit the memory"
        return f"{fastest}: <b>{takes}</b> in closed form.{near}"
    there_ms, ahead_ms = on_schedule
    later = "; with this plan it is being computed" * coming
    later += "; for this plan reset the what-ifs" * has_what_ifs()
    there = f" On Schedule an iteration takes <b>{time(there_ms)}</b> as loaded{later}."
    there *= there_ms > 0
    if same_time(best.total_ms, own.total_ms):
        loaded = f"{escape(own.words)}: {time(own.total_ms)} in closed form"
        return f"<b>No plan is faster than the loaded one</b>, {loaded}.{near}{there}"
    less = _less(best.total_ms, own.total_ms)
    if less < 0:
        return (
            f"<b>No plan here is faster than the loaded one</b> ({time(own.total_ms)} in closed form), which shards otherwise: "
            f"{words}, the fastest here, takes {takes}.{near}{there}"
        )
    both = f"{takes} instead of {time(own.total_ms)}{_by_sharding(best, own, alike)}"
    if not ahead_ms:
        share = f"<b>about {whole_percent(less)}&nbsp;% less time than as loaded</b>"
        return f"In closed form {words} takes {share}: {both}.{near}{there}"
    saved, beside = _less(ahead_ms, there_ms), f"{time(ahead_ms)} instead of {time(there_ms)}"
    first = (
        f"<b>{beside} on Schedule</b> ({whole_percent(saved)}&nbsp;% less) with {words}."
        if saved > EQUAL
        else f"On Schedule {words}, the fastest in closed form, is <b>no faster</b> than as loaded: {beside}."
    )
    return f"{first} The closed form, which sorts plans, says {both}.{_as_good(plans, 'It', 'this plan')}"


def _by_sharding(best: RankedPlan, own: RankedPlan, alike: RankedPlan | None) -> str:
    """Return what the loaded split takes in closed form once it is sharded as all plans are: what of a gain is no split."""
    if alike is None or alike is own:
        return ""
    if same_time(best.total_ms, alike.total_ms):
        return ", all of it by sharding"
    part = _less(alike.total_ms, own.total_ms)
    less = f", {whole_percent(part)}&nbsp;% less," * (part > 0)
    return f" ({time(alike.total_ms)}{less} by sharding alone)"


def _less(one_ms: float, other_ms: float) -> float:
    """Return how much less a time is than another, as a share, of the three digits that are shown."""
    return 1 - float(f"{one_ms:.3g}") / float(f"{other_ms:.3g}")


def _as_good(plans: Plans, form: str = "The closed form", plan: str = "it") -> str:
    """Say how many other plans are nearer to the fastest than predictions scatter in the median."""
    errors, _, scatter = off_on(plans.best.job.machine)
    if not len(errors):
        return ""
    near = sum(one.total_ms <= plans.best.total_ms * (1 + scatter) for one in plans.ranked)
    others = f"cannot tell {plan} from at least {plural(near - 1, 'other plan')}"
    return f" {form} {others if near > 1 else f'tells {plan} from all other plans'}."


def _bias(machine: Machine) -> str:
    """Say by how much predictions have all been too long or too short, and how far they scatter; empty where none ran."""
    errors, bias, scatter = off_on(machine)
    if not len(errors):
        return ""
    way = "long" if bias > 0 else "short"
    worst = round(float(abs((1 + errors) / (1 + bias) - 1).max()), 3)
    off = f"were all too {way}, by {percent(abs(bias))} in the median, and scatter around that by "
    return (
        f" Its {len(errors)} predictions of published runs {off if all(errors * bias > 0) else 'scatter by '}"
        f"{percent(round(scatter, 3))} in the median, {percent(worst)} at most: nearer plans it cannot tell apart."
    )


def _loaded_beside(shape: Shape) -> None:
    """Say what the loaded job takes, where it is of this model but of other numbers; else whose model this is."""
    job = own_job()
    if job is None or job.shape != shape:
        loaded_job_note()
        return
    quiet(
        f"The loaded job, <b>{escape(job.plan.words)}</b>, takes {time(iteration(job).total_ms)} for "
        f"{plural(job.plan.batch, 'sequence')} per iteration on {plural(job.plan.gpus, 'GPU')}; the plans here are for other "
        "numbers."
    )


def _dropped(job: Job, like: Job) -> list[str]:
    """Return what of the loaded job a plan cannot have, in words."""
    gone = {
        "uneven experts, as each GPU has all of them": like.plan.skew > job.plan.skew,
        "interleaved stages, which it cannot have": like.schedule.virtual > job.schedule.virtual,
    }
    return [words for words, holds in gone.items() if holds]


def _rests_on(one: RankedPlan, machine: Machine, like: Job | None) -> None:
    """Say what a plan's short name means, what all plans have, what limits them, and how far predictions were off."""
    splits = {
        "tensors of a layer over {} (TP)": one.plan.tensor,
        "layers over {} (PP)": one.plan.pipeline,
        "sequences over {} (CP)": one.plan.context,
        "experts over {} (EP)": one.plan.expert,
        "the batch over {} (DP)": one.plan.data,
    }
    words = [text.format(plural(over, "GPU")) for text, over in splits.items() if over > 1]
    micro = plural(one.plan.microbatches, "microbatch", "microbatches")
    each = plural(one.plan.microbatch_size, "sequence")
    reached = machine.network_gbps
    order = one.job.schedule
    given = [f"experts chosen unevenly (skew {one.plan.skew:g})"] * (one.plan.skew > 0)
    given += ["exchanges layer by layer"] * (order.exchanges == "layer")
    quiet(
        f"<b>{plan_word(one)}</b> splits {enumeration(words) or 'nothing'}, and each of its replicas computes {micro} of {each}. "
        "All plans shard the optimizer's state across replicas (ZeRO) and split norms over tensor-parallel GPUs (SP)."
        + " Gradients leave while the last backward pass computes." * order.overlap_gradients
        + f" All else is as loaded{': ' * bool(given)}{' and '.join(given)}." * (like is not None)
    )
    quiet(
        f"A GPU's network card reaches {reached:g} of {machine.nic_gbps:g} Gbit/s, all cards of a server "
        f"{reached * machine.gpus_per_server:g}; nothing else limits a transfer. Schedule and Compare take longer where transfers "
        + f"wait for ports{' or experts are chosen unevenly' * (one.plan.skew > 0)}"
        + ", and less where a microbatch computes while another's tokens travel."
    )
    quiet(f"<b>{escape(machine.title)}</b>: {trust(machine)}")


def _table(
    ranked: tuple[RankedPlan, ...], called: Mapping[int, str], parts: bool = False
) -> Content:
    """Return a row per plan; ``called``: what some are, by their identity; ``parts``: with what its time is spent on."""
    spent = [part for part in PLAN_PARTS if parts and any(one.parts[part] for one in ranked)]
    # What no plan of the list does is no column: the table then fits a narrow window.
    degrees = {"PP": "pipeline", "CP": "context", "EP": "expert"}
    idle = {
        word for word, field in degrees.items() if all(getattr(p.plan, field) == 1 for p in ranked)
    }
    idle |= set() if any(one.recomputes for one in ranked) else {"recompute"}
    idle |= set() if any(id(one) in called for one in ranked) else {"which"}
    rows = [
        {
            "plan": plan_word(one),
            "iteration (ms)": one.total_ms,
            "which": called.get(id(one), ""),
            "memory (GB)": one.memory.total_bytes / 1e9,
            "of peak": round(one.iteration.utilisation, 3),
            **one.plan.degrees,
            "microbatches": one.plan.microbatches,
            "sequences each": one.plan.microbatch_size,
            "recompute": one.recomputes,
            **{PLAN_PARTS[part][0].partition(",")[0]: round(one.parts[part], 2) for part in spent},
        }
        for one in ranked
    ]
    return [{name: value for name, value in row.items() if name not in idle} for row in rows]


def _take_away(job: Job, gain: str) -> None:
    """Offer a plan as a job, its task graph and a cluster that suits it, and the job to the other pages."""
    tasks = partial(task_graph, job)
    cluster = partial(suggested_cluster, job)
    download_menu(
        job.name,
        [
            ("Job (JSON)", ".job.json", lambda: dump_job(job)),
            ("Task graph (JSON)", ".taskgraph.json", lambda: dump_graph_json(tasks())),
            ("Cluster (JSON)", ".cluster.json", lambda: dump_cluster(cluster())),
        ],
    )
    use_job("use_plan", job, gain)


def draw(theme: Theme) -> None:
    """Draw the page."""
    model, way, servers = pick_model()
    with show_input_errors():
        if way == "plans" and model.shape is not None:
            plans_view(model, *pick_machine(model), servers, theme)
        else:
            search_view(model, pick_search(model.build(servers), servers), theme)
