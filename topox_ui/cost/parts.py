"""The parts table of the Cost page: edited in place, undone to the price set, saved and loaded as a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st

from topox_core.economics.parts import PARTS, Catalogue, Part
from topox_core.economics.parts_file import dump_parts, load_parts
from topox_ui.cost.state import CostState
from topox_ui.shell.charts import Content, editor, table_under
from topox_ui.shell.downloads import link_menu, offer, stem
from topox_ui.shell.page import chart_title, file_box
from topox_ui.state.prices import FILE, OWN_PRICES, Prices, catalogue, edit
from topox_ui.state.store import put

FIELDS = {"Price": "price_usd", "Watt": "power_w"}
MAX_MB = 5


def parts_table() -> None:
    """Draw the table, what to do with it, and where each figure comes from."""
    now = catalogue()
    chart_title("Parts", "edit a price or watts; every number on this page follows")
    shown = counted(now)
    # A new table for every state of the parts: what was edited is in the choices, not in the
    # widget.
    key = f"parts_{now.digest[:12]}_{len(shown)}"
    editor(
        table_of(shown),
        key=key,
        on_change=_edited,
        args=(key,),
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


def table_of(parts: Sequence[Part]) -> Content:
    """Return parts as the table shows them."""
    return [
        {
            "Part": part.name,
            "Price": part.price_usd,
            "Watt": part.power_w,
            "From": " / ".join(dict.fromkeys((part.price_from, part.power_from))),
        }
        for part in parts
    ]


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


def _edited(key: str) -> None:
    rows: dict[int, dict[str, Any]] = st.session_state[key]["edited_rows"]
    parts = counted(catalogue())
    edit(
        {
            parts[int(row)].id: {
                FIELDS[column]: value
                for column, value in values.items()
                if column in FIELDS and value is not None
            }
            for row, values in rows.items()
        }
    )


def _take(data: bytes, file: str) -> None:
    OWN_PRICES.set(load_parts(data, file))
    put(Prices(prices=FILE))
