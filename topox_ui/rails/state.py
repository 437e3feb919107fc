"""What can be chosen on the Rails page, and its sidebar: what runs, its degrees, the switch and its delay."""

import math
from collections.abc import Collection
from typing import Annotated, Any, ClassVar, Self

import streamlit as st
from msgspec import defstruct
from msgspec.structs import replace

from topox_core.errors import InputError, wrong_setting
from topox_core.fabrics.registry import FABRICS
from topox_core.model.quantities import DelayMs
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS, changed, check_on_rail, settings_of
from topox_core.rails.technologies import BY_KEY, fits, technology
from topox_core.rails.window_lengths import WindowList, load_windows
from topox_core.schema.fields import setting
from topox_core.text.numbers import delay_label, plural
from topox_core.training.job import Job
from topox_core.training.machine import Machine
from topox_core.training.plan import DEGREES as PLAN_DEGREES, ORDERS
from topox_ui.shell.charts import file_box, quiet
from topox_ui.state.loading import OWN_WINDOWS, loaded, loaded_job, own_job, scenario
from topox_ui.state.session import Index, NotNegative, PageState, as_in, put
from topox_ui.state.widgets import menu, number, pick, sidebar_part, slide, tick

JOB, SCENARIO, MEASURED, UPLOAD = "job", "scenario", "measured", "upload"
USUAL_MS = technology("piezo").reconfiguration_ms
AUTHORS_PRESET = "llama3-8b-perlmutter"
ANY = "any"
DEGREES = {
    "gpus": "GPUs",
    **PLAN_DEGREES,
    "microbatches": "Microbatches",
    "virtual_stages": "Virtual stages",
}
CONTROLS = {"on_demand": "on demand", "provisioned": "provisioned"}
SECTIONS = {
    "windows": "Windows",
    "control": "Control plane",
    "rivals": "Other ways to wire",
    "experts": "Expert parallelism",
    "bytes": "Bytes",
    "advice": "Which parallelism",
}
# What says how the page is looked at, and not what would be if the rail were another one.
OF_VIEW = ("source", "see", "authors", "lane", "from_ms", "to_ms")
OF_SOURCE = (*DEGREES, "schedule", "lane", "from_ms", "to_ms", "nic_gbps", "iteration_ms")


class RailsState(  # type: ignore[misc]
    defstruct(
        "Degrees", [(k, Index | None, None) for k in DEGREES], bases=(PageState,), frozen=True
    )
):
    """What runs, with which degrees, on which switch; None begins as the page, the preset or the file has it."""

    prefix = "rails."
    resets: ClassVar = {
        "source": OF_SOURCE,
        **dict.fromkeys(DEGREES, ("lane", "from_ms", "to_ms")),
        "schedule": ("from_ms", "to_ms"),
    }

    source: Annotated[str, setting(choices=(*PRESETS, JOB, SCENARIO, MEASURED, UPLOAD))] | None = (
        None
    )
    schedule: Annotated[str, setting(choices=tuple(ORDERS))] | None = None
    nic_gbps: Annotated[float, as_in(Machine, "nic_gbps")] | None = None
    iteration_ms: Annotated[float, as_in(WindowList, "iteration_ms")] | None = None

    delay_ms: DelayMs | None = None
    link_up_ms: Annotated[float, as_in(Rail, "link_up_ms")] = Rail.link_up_ms
    control: Annotated[str, setting(choices=CONTROLS)] = "provisioned"
    switch: Annotated[str, setting(choices=(ANY, *BY_KEY))] = ANY
    split: bool = False
    limit: Annotated[
        float,
        setting(
            "Waiting for the switch you accept",
            "%",
            ge=0,
            steps=(0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0),
        ),
    ] = 5.0
    latency_us: Annotated[float, as_in(Rail, "latency_us")] = Rail.latency_us
    fabric: Annotated[str, setting(choices=FABRICS)] = "scheduled"

    lane: Index = 0
    from_ms: NotNegative | None = None
    to_ms: NotNegative | None = None
    see: Annotated[str, setting(choices=SECTIONS)] = "windows"
    authors: bool = True
    billions: NotNegative | None = None
    advice_gpus: Index | None = None

    @property
    def runs(self) -> str:
        """What runs: the source; while none was chosen the reader's job where it fits a rail, else the paper's."""
        if self.source is not None:
            return self.source
        own = own_job()
        return AUTHORS_PRESET if own is None or why_not(own) else JOB

    def changed(self, **changes: Any) -> Self:
        """Return the state with some choices made anew; what belongs to a source stays with it when another job is loaded."""
        own = not changes.keys().isdisjoint(OF_SOURCE)
        now = replace(self, source=self.runs) if own else self
        return super(RailsState, now).changed(**changes)

    @property
    def switch_ms(self) -> float:
        """How long a circuit change takes: as chosen here, else for the loaded job where the page shows it, else as usual."""
        if self.delay_ms is not None:
            return self.delay_ms
        elsewhere = scenario().reconfiguration_ms if self.runs in (JOB, SCENARIO) else None
        return USUAL_MS if elsewhere is None else elsewhere

    @property
    def degrees(self) -> dict[str, Any]:
        """The changed degrees and schedule of a preset."""
        return {k: v for k, v in self.choices().items() if k in (*DEGREES, "schedule")}

    @property
    def product(self) -> int:
        """GPUs that the degrees of a job make."""
        own = settings_of(preset_of(self.runs)) | self.degrees
        return math.prod(int(own[name]) for name in ("tensor", "context", "pipeline", "data"))

    def job(self) -> Job:
        """Return the preset with the reader's degrees.

        Raises
        ------
        InputError
            If they do not go together.
        """
        base = preset_of(self.runs)
        changes: dict[str, Any] = dict(self.degrees)
        if changes and "gpus" not in changes:
            changes["gpus"] = self.product
        if "tensor" in changes:
            changes["gpus_per_server"] = changes["tensor"]
        if changes.get("schedule") == "interleaved":
            changes.setdefault("virtual_stages", 2)
        elif "schedule" in changes:
            changes["virtual_stages"] = 1
        if self.nic_gbps:
            changes["nic_gbps"] = self.nic_gbps
        # A given iteration time belongs to the degrees it was measured with.
        if set(changes) & {*DEGREES, "schedule"} and base.schedule.iteration_ms:
            changes["iteration_ms"] = 0.0
        return changed(base, changes) if changes else base

    def check(self) -> None:
        """Raise InputError where a job's degrees do not go together, or its rail does not fit the chosen switch.

        A rail may be wider than the switch, or its rings may not fit a part of it.
        """
        # Whether the loaded job can be put on rails is for the page to say.
        if self.runs in PRESETS:
            self.check_switch(self.job())

    def check_switch(self, job: Job) -> None:
        """Raise InputError where a job's rail does not fit the chosen switch."""
        one = BY_KEY.get(self.switch)
        if one is None:
            return
        together, most = job.plan.context * job.plan.expert, one.radix // 2
        if fits(one, job.servers, split=self.split) > 1 and together > most:
            raise wrong_setting(
                "switch",
                f"groups of {together} servers do not fit the {most} that one switch of {one.name} joins, so the rail "
                "cannot be split",
            )

    def local(self) -> Collection[str]:
        """Return the source and what belongs to it where it is a file: it stays on the machine that it was loaded on."""
        return ("source", *OF_SOURCE) if self.source == UPLOAD else ()


def preset_of(source: str) -> Job | None:
    """Return the preset of a source, or the loaded training job; None of other sources.

    Raises
    ------
    InputError
        If the loaded job cannot be put on rails.
    """
    if source != JOB:
        return PRESETS.get(source)
    job = loaded_job()
    if job is not None:
        check_on_rail(job)
    return job


def why_not(job: Job | None) -> str:
    """Return why a loaded job cannot be put on rails; empty where it can."""
    if job is None:
        return "it is a task graph, which does not say what parallelism its GPUs have"
    try:
        check_on_rail(job)
    except InputError:
        tensor, gpus = job.plan.tensor, job.machine.gpus_per_server
        return f"tensor parallelism must fill a server on rails, and here it has {tensor} of {plural(gpus, 'GPU')}"
    return ""


def reset() -> None:
    """Forget every choice but what runs and the section in view."""
    now = RailsState.now()
    put(RailsState(source=now.source, see=now.see, authors=now.authors))


# As the menu calls presets: a sidebar has room for about twenty letters; the whole title stands
# above the finding.
SHORT = {
    "llama3-8b-perlmutter": "Llama 8B, 16 GPUs",
    "llama3.1-405b-8192": "Llama 405B, 8,192",
    "llama3.1-405b-16384": "Llama 405B, 16,384",
    "llama3.1-405b-16384-cp": "Llama 405B, long text",
    "llama3.1-405b-2048": "Llama 405B, 2,048",
    "llama3-70b": "Llama 70B, 512 GPUs",
    "mixtral-8x7b": "Mixtral 8x7B, 256",
    "deepseek-16b": "DeepSeek 16B, 256",
    "toy": "Toy, 8 GPUs",
}


SOURCES = {name: SHORT.get(name, one.title) for name, one in PRESETS.items()} | {
    JOB: "Loaded training job",
    SCENARIO: "Loaded task graph",
    MEASURED: "Measured windows",
    UPLOAD: "My own windows",
}


def controls() -> None:
    """Draw the sidebar."""
    now = RailsState.now()
    job = now.runs == JOB or loaded_job() is not None
    with sidebar_part("What runs"):
        menu(
            RailsState,
            "source",
            {name: words for name, words in SOURCES.items() if job or name != JOB},
            label="What runs",
            value=now.runs,
            label_visibility="collapsed",
        )
        if now.runs == UPLOAD:
            _upload()
        if now.runs == SCENARIO and loaded() is not None:
            menu(
                RailsState,
                "fabric",
                FABRICS,
                label="As run on",
                help="The fabric whose execution gives the windows.",
            )
        base = _base()
        if base is not None:
            with st.expander("Degrees and schedule", key="rails_degrees", type="compact"):
                _degrees(base)
        st.html('<p class="side">What if</p>')
        _switch()
        slide(
            RailsState,
            "delay_ms",
            value=now.switch_ms,
            take=lambda ms: RailsState.choose(delay_ms=ms, switch=None),
            help="Dark time of a circuit change. Windows at least this long hide it. It begins as you chose it for the "
            f"loaded job, else with {delay_label(USUAL_MS)}.",
        )
        # Two words beside each other in a narrow sidebar.
        st.html("<style>.st-key-rails_control button { padding: .25rem .5rem; }</style>")
        pick(
            RailsState,
            "control",
            CONTROLS,
            label="Controller",
            at=st.container(key="rails_control"),
            help="on demand: circuits change when the traffic is ready. provisioned: as soon as the traffic "
            "before it has ended.",
        )
        slide(
            RailsState,
            "link_up_ms",
            help="Time until a NIC sees light again, added to the delay of the switch: 3 to 6 s on the authors' testbed.",
        )
        slide(RailsState, "limit", help="Sets the slowest switch that is still acceptable.")
        if now.choices().keys() - {*OF_VIEW}:
            st.button(
                "Reset what-ifs",
                key="rails_reset",
                on_click=reset,
                width="stretch",
                help="Back to the job and the delay as the page began.",
            )


def _base() -> Job | None:
    """Return what the degrees begin with; nothing where the loaded job cannot be put on rails."""
    try:
        return preset_of(RailsState.now().runs)
    except InputError:
        return None


def _switch() -> None:
    def take(name: str) -> None:
        delay = {"delay_ms": BY_KEY[name].reconfiguration_ms} if name in BY_KEY else {}
        RailsState.choose(switch=name, **delay)

    menu(
        RailsState,
        "switch",
        {ANY: "by its delay"} | {key: one.title for key, one in BY_KEY.items()},
        label="Switch (ports)",
        take=take,
        help="Sets the delay. A rail that needs more ports than one such switch has is refused.",
    )
    if RailsState.now().switch != ANY:
        tick(
            RailsState,
            "split",
            label="Split wide rails",
            help="A rail that needs more ports than one switch has uses several; fibres that join them are not "
            "counted.",
        )


def _degrees(base: Job) -> None:
    """Draw the degrees; GPUs follow them until they are set, and then have to be their product."""
    now = RailsState.now()
    columns = st.columns(2)
    schedule = now.schedule or base.schedule.order
    shown = [key for key in DEGREES if key != "virtual_stages" or schedule == "interleaved"]
    for k, name in enumerate(shown):
        value = getattr(now, name)
        if value is None:
            value = RailsState.now().product if name == "gpus" else shown_degree(base, name)
        number(
            RailsState,
            name,
            label=DEGREES[name],
            value=value,
            # A narrow sidebar has room for two short names beside each other.
            at=columns[k % 2] if len(DEGREES[name]) <= 4 else st,
            step=1,
            help=_HELP.get(name),
        )
    menu(
        RailsState,
        "schedule",
        ORDERS,
        label="Schedule",
        value=schedule,
        take=lambda name: RailsState.choose(schedule=name, virtual_stages=None),
    )
    slide(RailsState, "nic_gbps", label="NIC of a GPU", value=now.nic_gbps or base.machine.nic_gbps)


_HELP = {
    "gpus": "TP x CP x PP x DP, unless you set another number.",
    "tensor": "Inside a server; not on the rail.",
    "data": "FSDP shards over DP x CP.",
    "expert": "Expert-parallel ranks are a subset of the data-parallel ranks.",
    "microbatches": "Per replica and iteration.",
}


def shown_degree(base: Job, name: str) -> int:
    """Return a degree of a preset as the sidebar begins with it."""
    value = int(settings_of(base)[name])
    if name == "virtual_stages" and RailsState.now().schedule == "interleaved":
        return max(2, value)
    return value


def _upload() -> None:
    """Offer to bring a list of windows; a bad one costs a line, the one before stays."""
    file_box("Windows (.json, .csv)", "up_windows", _take, max_upload_size=50)
    if not OWN_WINDOWS.there:
        quiet("One row per window: length_ms, and other columns if known.")
    else:
        _iteration()


def _take(data: bytes, file: str) -> None:
    OWN_WINDOWS.set(load_windows(data, file))
    RailsState.choose(lane=None, from_ms=None, to_ms=None, iteration_ms=None)


def _iteration() -> None:
    """Ask how long the iteration lasts where the file does not say so: a table has no place for it."""
    windows = OWN_WINDOWS.get()
    if windows.iteration_ms > last_end_ms(windows) + 1e-9:
        return
    number(
        RailsState,
        "iteration_ms",
        step=100.0,
        placeholder=f"{windows.iteration_ms:,.6g}",
        help="The file does not say how long the iteration lasts; without it, it ends with its last window, and the "
        "overhead comes out too large.",
    )


def last_end_ms(windows: WindowList) -> float:
    """Return where the last window of a list ends."""
    return max(one.begin_ms + max(0.0, one.length_ms) for one in windows.windows)
