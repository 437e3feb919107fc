"""The Rails page's sidebar: what runs, its degrees, the switch and its delay."""

import streamlit as st

from topox_core.errors import InputError
from topox_core.fabrics.registry import FABRICS
from topox_core.model.cluster import DELAYS_MS, SPEEDS_GBPS
from topox_core.rails.presets import PRESETS, settings_of
from topox_core.rails.technologies import TECHNOLOGIES
from topox_core.rails.window_lengths import WindowList, load_windows
from topox_core.text.numbers import delay_label, time
from topox_core.training.job import Job
from topox_ui.rails.state import (
    ANY,
    CONTROLS,
    DEGREES,
    JOB,
    MEASURED,
    SCENARIO,
    SCHEDULES,
    UPLOAD,
    RailsState,
    preset_of,
    reset,
)
from topox_ui.shell.charts import file_box, quiet
from topox_ui.state.loading import OWN_WINDOWS, loaded, loaded_job
from topox_ui.state.widgets import menu, number, pick, sidebar_part, slide, tick

LINK_UPS_MS = (0.0, 1.0, 10.0, 50.0, 100.0, 500.0, 1000.0, 3000.0, 6000.0)
LIMITS = (0.5, 1.0, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0)
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
WORDS = {
    "gpus": "GPUs",
    "tensor": "TP",
    "pipeline": "PP",
    "data": "DP",
    "context": "CP",
    "expert": "EP",
    "microbatches": "Microbatches",
    "virtual_stages": "Virtual stages",
}


def source_words(source: str) -> str:
    """Return how the menu calls a source."""
    own = {
        JOB: "Loaded training job",
        SCENARIO: "Loaded task graph",
        MEASURED: "Measured windows",
        UPLOAD: "My own windows",
    }
    return own.get(source) or SHORT.get(source) or PRESETS[source].title


def controls() -> None:
    """Draw the sidebar."""
    now = RailsState.now()
    job = (JOB,) if now.runs == JOB or loaded_job() is not None else ()
    with sidebar_part("What runs"):
        menu(
            "What runs",
            RailsState,
            "source",
            {name: source_words(name) for name in (*PRESETS, *job, SCENARIO, MEASURED, UPLOAD)},
            value=now.runs,
            label_visibility="collapsed",
        )
        if now.runs == UPLOAD:
            _upload()
        if now.runs == SCENARIO and loaded() is not None:
            menu(
                "As run on",
                RailsState,
                "fabric",
                FABRICS,
                help="The fabric whose execution gives the windows.",
            )
        base = _base()
        if base is not None:
            with st.expander("Degrees and schedule", key="rails_degrees", type="compact"):
                _degrees(base)
        st.html('<p class="side">What if</p>')
        _switch()
        slide(
            "Reconfiguration delay",
            RailsState,
            "delay_ms",
            DELAYS_MS,
            words=delay_label,
            take=lambda ms: RailsState.choose(delay_ms=ms, switch=None),
            help="Dark time of a circuit change. Windows at least this long hide it.",
        )
        # Two words beside each other in a narrow sidebar.
        st.html("<style>.st-key-rails_control button { padding: .25rem .5rem; }</style>")
        pick(
            "Controller",
            RailsState,
            "control",
            CONTROLS,
            at=st.container(key="rails_control"),
            help="on demand: circuits change when the traffic is ready. provisioned: as soon as the traffic "
            "before it has ended.",
        )
        slide(
            "Link start-up",
            RailsState,
            "link_up_ms",
            LINK_UPS_MS,
            words=lambda v: "0" if not v else time(v),
            help="Time until a NIC sees light again, added to the delay of the switch: 3 to 6 s on the authors' testbed.",
        )
        slide(
            "Overhead you accept",
            RailsState,
            "limit",
            LIMITS,
            words=lambda v: f"{v:g} %",
            help="Sets the slowest switch that is still acceptable.",
        )
        if now.choices().keys() - {"source"}:
            st.button(
                "Reset what-ifs",
                key="rails_reset",
                on_click=reset,
                width="stretch",
                help="Back to the preset.",
            )


def _base() -> Job | None:
    """Return what the degrees begin with; nothing where the loaded job cannot be put on rails."""
    try:
        return preset_of(RailsState.now().runs)
    except InputError:
        return None


def _switch() -> None:
    known = {one.key: one for one in TECHNOLOGIES}

    def take(name: str) -> None:
        delay = {"delay_ms": known[name].reconfiguration_ms} if name in known else {}
        RailsState.choose(switch=name, **delay)

    menu(
        "Switch (ports)",
        RailsState,
        "switch",
        {ANY: "by its delay"} | {key: f"{one.name} ({one.radix:,})" for key, one in known.items()},
        take=take,
        help="Sets the delay. A rail that needs more ports than one such switch has is refused.",
    )
    if RailsState.now().switch != ANY:
        tick(
            "Split wide rails",
            RailsState,
            "split",
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
            WORDS[name],
            RailsState,
            name,
            0,
            1_000_000,
            value=value,
            # A narrow sidebar has room for two short names beside each other.
            at=columns[k % 2] if len(WORDS[name]) <= 4 else st,
            step=1,
            help=_HELP.get(name),
        )
    menu(
        "Schedule",
        RailsState,
        "schedule",
        SCHEDULES,
        value=schedule,
        take=lambda name: RailsState.choose(schedule=name, virtual_stages=None),
    )
    slide(
        "NIC of a GPU",
        RailsState,
        "nic_gbps",
        SPEEDS_GBPS,
        value=now.nic_gbps or base.machine.nic_gbps,
        words=lambda v: f"{v:g}G",
    )


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
    assert windows is not None
    if windows.iteration_ms > last_end_ms(windows) + 1e-9:
        return
    number(
        "Iteration, ms",
        RailsState,
        "iteration_ms",
        0.0,
        1e9,
        step=100.0,
        placeholder=f"{windows.iteration_ms:,.6g}",
        help="The file does not say how long the iteration lasts; without it, it ends with its last window, and the "
        "overhead comes out too large.",
    )


def last_end_ms(windows: WindowList) -> float:
    """Return where the last window of a list ends."""
    return max(one.begin_ms + max(0.0, one.length_ms) for one in windows.windows)
