"""What the reader sets on Which switch: the sidebar, and the table of switches, edited, saved and loaded as a file."""

from collections.abc import Collection, Mapping
from typing import Annotated, Any, ClassVar, Literal

import streamlit as st

from topox_core.economics.networks import Counting
from topox_core.errors import InputError
from topox_core.model.cluster import Cluster
from topox_core.schema.fields import setting
from topox_core.studies.buying.offers import (
    FIGURES,
    LEVELS,
    OFFERS,
    SwitchProduct,
    dump_offers,
    edits_between,
    load_offers,
    with_edit,
    with_edits,
)
from topox_core.studies.buying.question import GPU_HOUR_USD, MAX_DEGREES, RIVALS
from topox_core.studies.buying.words import offer_rows
from topox_ui.cost.controls import year_controls
from topox_ui.shell.charts import chart_title, editor, file_box, table_under
from topox_ui.shell.downloads import offer
from topox_ui.state.loading import loaded_job
from topox_ui.state.session import (
    Lasting,
    PageState,
    as_in,
    notify,
    notify_errors,
    put,
)
from topox_ui.state.widgets import control, number, pick, sidebar_part

FILE = "file"
OWN_OFFERS = Lasting[tuple[SwitchProduct, ...]]("buying_offers")


class BuyingState(PageState):
    """What is to be least, among which switches and networks, and what is assumed."""

    prefix = "buy."
    resets: ClassVar = {"offers": ("edits", "left_out")}

    by: Literal["dollars", "time", "price"] = "dollars"
    ports: Annotated[
        tuple[Annotated[int, as_in(Cluster, "ports_per_server")], ...],
        setting(max_length=MAX_DEGREES),
    ] = ()
    rivals: Annotated[
        tuple[Annotated[str, setting(choices=RIVALS)], ...], setting(min_length=1)
    ] = tuple(RIVALS)
    offers: Literal["published", "file"] = "published"
    edits: str = ""
    left_out: Annotated[tuple[str, ...], setting(max_length=40)] = ()
    usd_per_gpu_hour: Annotated[float, setting(ge=0, le=10_000)] = GPU_HOUR_USD.usual
    gpus_per_server: Annotated[int, as_in(Counting, "gpus_per_server")] | None = None

    def local(self) -> Collection[str]:
        """Return the switches where they are a file: it stays on the machine that it was loaded on."""
        return ("offers", "edits", "left_out") if self.offers == FILE else ()

    def check(self) -> None:
        """Raise InputError where a file is named that is not here, or edits that its switches cannot have."""
        if self.offers == FILE and OWN_OFFERS.get() is None:
            raise InputError("no file of switches is loaded", field="offers")
        with_edits(self.base(), self.edits)

    def base(self) -> tuple[SwitchProduct, ...]:
        """Return the published switches or those of the file, before any edit."""
        return (OWN_OFFERS.get() or OFFERS) if self.offers == FILE else OFFERS


def all_offers() -> tuple[SwitchProduct, ...]:
    """Return the switches as they are edited, those that are left out among them."""
    now = BuyingState.now()
    with notify_errors():
        return with_edits(now.base(), now.edits)
    BuyingState.choose(edits=None)
    return now.base()


def chosen_offers() -> tuple[SwitchProduct, ...]:
    """Return the switches that are considered."""
    left_out = BuyingState.now().left_out
    return tuple(one for one in all_offers() if one.key not in left_out)


@notify_errors()
def edit(key: str, field: str, level: str, value: float) -> None:
    """Take one edit; one that cannot be is named in a line and not taken."""
    changed = with_edit(all_offers(), key, field, level, value)
    BuyingState.choose(edits=edits_between(BuyingState.now().base(), changed))


MAX_MB = 1
CONSIDER = "Use"
SHORT = {"delay_ms": "ms", "ports": "Ports", "port_usd": "$", "port_w": "W"}
# All columns fit the width of the page, 1,045 px.
WIDTHS_PX = {"delay_ms": 76, "ports": 58, "port_usd": 68, "port_w": 75}
# By the name of a column, which figure it is, and which of its three values: first the usual ones,
# which a narrow screen has room for.
COLUMNS = {
    f"{SHORT[field]}{'' if level == 'usual' else f', {level}'}": (field, level)
    for level in sorted(LEVELS, key=lambda level: level != "usual")
    for field in FIGURES
    if field != "ports" or level == "usual"
}


def offers_table() -> None:
    """Draw the table, what to do with it, and where each figure comes from."""
    now, state = all_offers(), BuyingState.now()
    chart_title(
        "Switches on offer",
        "delay (ms), ports of a switch, price and power of a port, each with its range; every number can be changed",
    )
    editor(
        [
            {
                CONSIDER: one.key not in state.left_out,
                "Switch": one.title,
                **{name: one.figure(field).at(level) for name, (field, level) in COLUMNS.items()},
            }
            for one in now
        ],
        "offers",
        _edited,
        disabled=["Switch"],
        column_config={
            CONSIDER: st.column_config.CheckboxColumn(
                width=54, help="Whether this switch is compared."
            ),
            "Switch": st.column_config.TextColumn(width=200),
            **{
                name: st.column_config.NumberColumn(
                    format="%d" if field == "ports" else "%.6g",
                    min_value=1 if field == "ports" else 0,
                    width=WIDTHS_PX[field],
                    help=f"{FIGURES[field][0]}, {level} value.",
                )
                for name, (field, level) in COLUMNS.items()
            },
        },
    )
    with st.container(horizontal=True, key="offers_row"):
        with st.popover("Switches file", icon=":material/folder_open:"):
            offer("switches", [("Switches (JSON)", ".offers.json", lambda: dump_offers(now))])
            file_box(
                "Load (.offers.json)",
                "offers_file_in",
                _take,
                type=["json", "gz"],
                max_upload_size=MAX_MB,
            )
        if state.edits or state.left_out or state.offers == FILE:
            st.button(
                "As published",
                key="offers_published",
                icon=":material/undo:",
                on_click=BuyingState.choose,
                kwargs={"offers": None, "edits": None, "left_out": None},
                help="Back to the seven switches with the figures of their papers.",
            )
    # Delays from 10 ns to minutes stand in one column: each number as it is, none with two decimals.
    table_under(
        "offers_sources",
        lambda: [
            {key: f"{cell:g}" if isinstance(cell, float) else cell for key, cell in row.items()}
            for row in offer_rows(now)
        ],
        "Where each figure comes from",
    )


def _edited(row: int, cells: Mapping[str, Any]) -> None:
    one = all_offers()[row].key
    for column, value in cells.items():
        if column == CONSIDER:
            _consider(one, bool(value))
        elif column in COLUMNS and value is not None:
            edit(one, *COLUMNS[column], float(value))


def _consider(key: str, use: bool) -> None:
    now = BuyingState.now().left_out
    after = tuple(one for one in now if one != key) if use else (*now, key)
    if len(after) == len(all_offers()):
        notify("error", "At least one switch must be compared.")
        return
    BuyingState.choose(left_out=after or None)


def _take(data: bytes, file: str) -> None:
    OWN_OFFERS.set(load_offers(data, file))
    put(BuyingState.now().changed(offers=FILE))


PORTS = (1, 2, 4, 8)


def controls(cluster: Cluster) -> None:
    """Draw what can be chosen beside the switches themselves."""
    job = loaded_job()
    own = cluster.devices_per_server if job is None else job.machine.gpus_per_server
    with sidebar_part("What counts"):
        pick(
            BuyingState,
            "by",
            label="Minimise",
            help="Dollars per iteration: cost of network and GPUs per hour, times the iteration time. Or the time alone, or the price "
            "of the network alone.",
        )
        _ports(cluster)
        control(
            "pills",
            BuyingState,
            "rivals",
            label="Compared with",
            options=tuple(RIVALS),
            words=lambda key: RIVALS[key][0],
            selection_mode="multi",
            take=lambda rivals: BuyingState.choose(rivals=rivals or None),
            help="Networks without an optical switch that changes circuits during the job.",
        )
        st.html('<p class="side">Assumed</p>')
        number(
            BuyingState,
            "usd_per_gpu_hour",
            label="GPU, per hour ($)",
            step=0.1,
            help="With its server, power and building.",
        )
        number(
            BuyingState,
            "gpus_per_server",
            value=BuyingState.now().gpus_per_server or own,
            take=lambda value: BuyingState.choose(gpus_per_server=None if value == own else value),
            help="Their cost is counted while they wait for the network. Default: the job's own number.",
        )
        with st.expander("A year of the network", key="buying_year", type="compact"):
            year_controls()
        st.caption(
            "Port speed and collectives are chosen on Schedule, prices of other parts on Per iteration; they hold here too."
        )


def _ports(cluster: Cluster) -> None:
    own = cluster.ports_per_server
    step = 1 if own == cluster.switches else cluster.switches
    now = BuyingState.now().ports
    options = sorted({own, *now, *(step * one for one in PORTS)})

    def take(ports: Any) -> None:
        BuyingState.choose(ports=None if tuple(ports) in ((), (own,)) else tuple(sorted(ports)))

    control(
        "pills",
        BuyingState,
        "ports",
        label="Ports per server",
        value=now or (own,),
        options=tuple(options),
        selection_mode="multi",
        take=take,
        help="Each number is tried; every port of a server goes to another switch. Default: the cluster's number.",
    )
