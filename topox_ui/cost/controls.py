"""What the reader sets on Cost: the sidebar, and the parts table, edited in place, saved and loaded as a file."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

import streamlit as st

from topox_core.economics.comparison import Question, Running, sizes_up_to
from topox_core.economics.networks import NETWORKS, Counting
from topox_core.economics.price_sets import (
    PARTS,
    PRICE_SETS,
    Catalogue,
    Part,
    dump_parts,
    load_parts,
)
from topox_core.figures.rails.delay import switch_word
from topox_core.rails.technologies import BY_KEY
from topox_core.schema.fields import setting
from topox_ui.shell.charts import Content, chart_title, editor, file_box, table_under
from topox_ui.shell.downloads import link_menu, offer, stem
from topox_ui.state.loading import own_job
from topox_ui.state.prices import FILE, OWN_PRICES, Prices, catalogue, edit
from topox_ui.state.session import Count, PageState, as_in, put
from topox_ui.state.widgets import menu, number, pick, sidebar_part, slide, switch

MINE = "photonic_rails"
RIVALS = {name: words for name, words in NETWORKS.items() if name != MINE}


class CostState(PageState):
    """How large a network is built, how its parts are counted, against what, and what a year is reckoned with.

    ``gpus`` and ``gpus_per_server`` are None where the job that the reader loaded says them, else the paper's example.
    """

    prefix = "cost."

    gpus: Count | None = None
    gpus_per_server: Annotated[int, as_in(Counting, "gpus_per_server")] | None = None
    counting: Annotated[str, as_in(Counting, "method")] = Counting.method
    against: Annotated[str, setting(choices=RIVALS)] = "rail_optimized"
    nics: Annotated[bool, as_in(Counting, "nics")] = Counting.nics
    fibre: Annotated[bool, as_in(Counting, "fibre")] = Counting.fibre
    fibre_m: Annotated[float, as_in(Counting, "fibre_m_per_link")] = Counting.fibre_m_per_link
    ocs_ports: Annotated[int, as_in(Counting, "ocs_ports_per_gpu")] = Counting.ocs_ports_per_gpu
    optics: Annotated[int, as_in(Counting, "ocs_transceivers_per_gpu")] = (
        Counting.ocs_transceivers_per_gpu
    )
    switch_optics: Annotated[bool | None, as_in(Counting, "switch_transceivers")] = (
        Counting.switch_transceivers
    )
    joined: Annotated[bool, as_in(Counting, "joined_rails")] = Counting.joined_rails
    look_ahead: Annotated[bool, as_in(Counting, "look_ahead")] = Counting.look_ahead
    usd_per_kwh: Annotated[float, as_in(Running, "usd_per_kwh")] = Running.usd_per_kwh
    pue: Annotated[float, as_in(Running, "pue")] = Running.pue
    years: Annotated[float, as_in(Running, "years")] = Running.years
    switch: Annotated[str, setting(choices=BY_KEY)] = "piezo"
    measure: Literal["cost", "power"] = "cost"
    bill: Annotated[str, setting(choices=NETWORKS)] = MINE

    @property
    def each(self) -> int:
        """GPUs of a server."""
        own = own_job()
        return self.gpus_per_server or (own.machine.gpus_per_server if own else 8)

    @property
    def built_gpus(self) -> int:
        """The GPUs asked for, in whole servers."""
        own = own_job()
        gpus = self.gpus or (own.plan.gpus if own else 1_024)
        return max(1, round(gpus / self.each)) * self.each

    @property
    def count_rules(self) -> Counting:
        """How parts are counted."""
        return Counting(
            self.each,
            self.counting,
            self.nics,
            self.fibre,
            self.fibre_m,
            self.ocs_ports,
            self.optics,
            self.switch_optics,
            self.joined,
            self.look_ahead,
        )

    @property
    def running(self) -> Running:
        """What a year is reckoned with."""
        return Running(self.usd_per_kwh, self.pue, self.years)


def question() -> Question:
    """Return what the page answers."""
    now = CostState.now()
    return Question(now.built_gpus, catalogue(), now.count_rules)


def radix() -> tuple[int, str]:
    """Return the ports and the name of the optical switch that a rail is to be built of."""
    technology = BY_KEY[CostState.now().switch]
    return technology.radix, f"{technology.vendor} ({switch_word(technology.name)})"


FIELDS = {"Price": "price_usd", "Watt": "power_w"}
MAX_MB = 5


def parts_table() -> None:
    """Draw the table, what to do with it, and where each figure comes from."""
    now = catalogue()
    chart_title("Parts", "edit a price or watts; every number on this page follows")
    editor(
        [
            {
                "Part": part.name,
                "Price": part.price_usd,
                "Watt": part.power_w,
                "From": " / ".join(dict.fromkeys((part.price_from, part.power_from))),
            }
            for part in counted(now)
        ],
        "parts",
        _edited,
        disabled=["Part", "From"],
        column_config={
            "Part": st.column_config.TextColumn(width=168),
            "Price": st.column_config.NumberColumn(
                format="dollar", min_value=0.0, step=0.01, width=92
            ),
            "Watt": st.column_config.NumberColumn(
                format="%.4g", min_value=0.0, step=0.0001, width=68
            ),
            "From": st.column_config.TextColumn(
                help="Source of the price / of the watts; the table below cites it."
            ),
        },
    )
    with st.container(horizontal=True, key="parts_row"):
        with st.popover("Parts file", icon=":material/folder_open:"):
            offer(stem(now.name), [("Parts (JSON)", ".parts.json", lambda: dump_parts(now))])
            file_box(
                "Load (.parts.json)",
                "cost_file_in",
                _take,
                type=["json", "gz"],
                max_upload_size=MAX_MB,
            )
        if Prices.now().parts:
            st.button(
                "Undo edits",
                key="undo_parts",
                icon=":material/undo:",
                on_click=Prices.choose,
                kwargs={"parts": None},
                help="Back to the price set or the file as it was loaded.",
            )
        own = " Prices of a file of your own stay on this machine: send the file."
        link_menu(more=own if Prices.now().prices == FILE else "")
    table_under("parts_sources", lambda: sources_of(now), "Where each figure comes from")


def counted(now: Catalogue) -> list[Part]:
    """Return the parts that count: network cards and fibre only where the reader has them counted."""
    counting = CostState.now().count_rules
    left_out = {
        name for name, on in (("nic", counting.nics), ("fibre_m", counting.fibre)) if not on
    }
    return [part for part in now.parts if part.id not in left_out]


def sources_of(now: Catalogue) -> Content:
    """Return who says what of each part."""
    return [
        {
            "part": part.name,
            "unit": PARTS[part.id],
            "price ($)": part.price_usd,
            "power (W)": part.power_w,
            "per port ($)": part.port_usd,
            "per port (W)": part.port_w,
            "price from": part.price_from,
            "watts from": part.power_from,
            "source": part.source,
        }
        for part in now.parts
    ]


def _edited(row: int, cells: Mapping[str, Any]) -> None:
    part = counted(catalogue())[row].id
    known = {field: cells.get(name) for name, field in FIELDS.items()}
    edit({part: {field: figure for field, figure in known.items() if figure is not None}})


def _take(data: bytes, file: str) -> None:
    OWN_PRICES.set(load_parts(data, file))
    put(Prices(prices=FILE))


LARGEST = 32_768
# Price sets as the menu calls them: a sidebar has room for about twenty letters; the whole name
# stands above the finding.
LETTERS = 20
SHORT_SETS = {
    "opus-v1": "FS list, 2025",
    "mixnet": "MixNet Table 4",
    "opus-v3-h200": "FS list, v3 (H200)",
    "opus-v3-gb200": "FS list, v3 (GB200)",
}
COUNTING_WORDS = {"paper": "published", "whole-switches": "whole"}


def controls() -> None:
    """Draw the sidebar."""
    now = CostState.now()
    with sidebar_part("Build"):
        each, gpus = now.each, now.built_gpus
        slide(
            CostState,
            "gpus",
            sizes_up_to(max(LARGEST, 512 * each), each, (gpus,)),
            label="GPUs",
            value=gpus,
            words=lambda v: f"{v:,}",
            help="Each has one network interface; GPUs of the same number in all servers share a rail.",
        )
        slide(
            CostState,
            "gpus_per_server",
            value=each,
        )
        pick(
            CostState,
            "counting",
            COUNTING_WORDS,
            help="published: parts of switches, as in the Opus paper. whole: whole switches, no more tiers than "
            "needed.",
        )
        _prices()
        menu(CostState, "against", RIVALS, label="Compared with")
        with st.expander("What is counted", key="cost_counted", type="compact"):
            _counted(now)
        with st.expander("Cost per year", key="cost_year", type="compact"):
            year_controls()
        if now.choices() or Prices.now().choices():
            st.button(
                "Reset",
                key="cost_reset",
                on_click=put,
                args=(CostState(), Prices()),
                width="stretch",
                help="Back to the values that the page starts with.",
            )


def price_controls() -> None:
    """Draw the sidebar of Per iteration: at whose prices, and what a year is reckoned with."""
    with sidebar_part("Prices"):
        _prices()
        with st.expander("Cost per year", key="cost_year", type="compact"):
            year_controls()


def _prices() -> None:
    sets = {name: SHORT_SETS.get(name, one.name) for name, one in PRICE_SETS.items()}
    own = OWN_PRICES.get()
    if own is not None:
        whole = len(own.name) <= LETTERS
        sets[FILE] = own.name if whole else f"{own.name[: LETTERS - 1].rstrip()}…"
    menu(
        Prices,
        "prices",
        sets,
        label="Prices",
        help="One list for every page that prices a network: Cost and its views, Compare, Rails.",
    )


def _counted(now: CostState) -> None:
    menu(
        CostState,
        "switch",
        {key: one.title for key, one in BY_KEY.items()},
        label="Optical switch (ports)",
        help="Its ports limit how many servers a rail can join. Its price is in the parts table.",
    )
    slide(CostState, "ocs_ports")
    slide(CostState, "optics")
    switch(CostState, "nics", label="NICs")
    switch(CostState, "fibre", label="Fibre")
    if now.fibre:
        number(CostState, "fibre_m", label="Metres per link", step=5.0)
    optics = now.switch_optics
    switch(
        CostState,
        "switch_optics",
        value=Prices.now().base().switch_transceivers if optics is None else optics,
    )
    if now.counting == "whole-switches":
        switch(CostState, "joined")
    switch(CostState, "look_ahead")


def year_controls() -> None:
    """Draw what a year of the network is reckoned with, on every page of Cost the same."""
    number(CostState, "usd_per_kwh", label="Electricity, $ per kWh", step=0.01)
    number(CostState, "pue", label="PUE", step=0.05)
    number(CostState, "years", step=0.5)
