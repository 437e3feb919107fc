"""What cannot be asked of rails is told in one line that names its field."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.topox_core.rails.rail_iterations import chain
from topox_core.errors import InputError
from topox_core.rails.advice import advise, constraints
from topox_core.rails.builder import build
from topox_core.rails.control.simulate import simulate
from topox_core.rails.counts import phases_of_stage, windows_by_formula, windows_by_stage
from topox_core.rails.delay import (
    iteration_source,
    on_demand_ms,
    provisioned_ms,
    slowest_switch,
    study,
    windows_source,
)
from topox_core.rails.iteration import Rail
from topox_core.rails.presets import PRESETS, preset
from topox_core.rails.technologies import TECHNOLOGIES, fits, gpus, technology
from topox_core.rails.window_lengths import share_above

PRESET = PRESETS["llama3-8b-perlmutter"]
PIPELINE = PRESET.changed(pipeline=4, data=4, gpus=64, iteration_ms=None)
REFUSED: dict[str, Callable[[], object]] = {
    "settings, field reconfiguration_ms: must be 0 to 1e+09 (got -1)": lambda: simulate(
        chain(1.0, 2.0), Rail(reconfiguration_ms=-1.0)
    ),
    "settings, field link_up_ms: must be 0 to 1e+09 (got nan)": lambda: simulate(
        chain(1.0, 2.0), Rail(link_up_ms=float("nan"))
    ),
    "settings, field nic_gbps: must be greater than 0 and at most 1e9 (got 0)": lambda: simulate(
        chain(1.0, 2.0), Rail(nic_gbps=0.0)
    ),
    "settings, field nic_ports: must be at least 1 (got 0)": lambda: simulate(
        chain(1.0, 2.0), Rail(nic_ports=0)
    ),
    "needs 4 ports a NIC, one for each neighbour (fsdp 2, pp 2); got 2": lambda: simulate(
        build(PIPELINE), Rail(static_split=True)
    ),
    "settings, field reconfiguration_ms: must be 0 to 1e+09 (got -5)": lambda: iteration_source(
        build(PRESET), Rail(reconfiguration_ms=-5.0)
    ),
    "settings, field microbatches: must be at least 1 (got 0)": lambda: windows_by_formula(0),
    "settings, field stages: must be at least 1 (got 0)": lambda: windows_by_stage(0, 4),
    "settings, field schedule: 'gpipes': unknown schedule": lambda: windows_by_stage(
        4, 4, "gpipes"
    ),
    "settings, field microbatches: must be a multiple of the 4 stages": lambda: windows_by_stage(
        4, 6, "interleaved"
    ),
    "settings: 1,000 stages and 10,000 microbatches make 20,000,000 passes": lambda: (
        windows_by_stage(1000, 10_000)
    ),
    "settings, field stage: must be 0 to 3 (got 4)": lambda: phases_of_stage(4, 4, "1f1b", 4),
    "settings, field windows: at least one window is needed (the list is empty)": lambda: (
        provisioned_ms(10.0, [], 1.0),
    ),
    "field windows: at least one window is needed": lambda: share_above([], 1.0),
    "settings, field delay_ms: must be 0 to 1e+09 (got -1)": lambda: on_demand_ms(
        10.0, [1.0], -1.0
    ),
    "settings, field windows: must be finite numbers": lambda: on_demand_ms(
        10.0, [float("nan")], 1.0
    ),
    "settings, field base_ms: must be 0 to 1e15 (got -10)": lambda: on_demand_ms(-10.0, [1.0], 1.0),
    "settings, field delays_ms: must be 1 to 200 values (got 0)": lambda: study(
        windows_source(10.0, [1.0]), ()
    ),
    "settings, field delay_ms: must be 0 to 1e+09 (got inf)": lambda: study(
        windows_source(10.0, [1.0]), (1.0, float("inf"))
    ),
    "settings, field limit_percent: must be 0 to 1e6 (got -1)": lambda: slowest_switch(
        windows_source(10.0, [1.0]), -1.0
    ),
    "settings, field limit_percent: the overhead is above 1 % even": lambda: slowest_switch(
        windows_source(10.0, [-1.0]), 1.0
    ),
    "settings, field technology: 'piezzo': unknown technology (did you mean 'piezo'?)": lambda: (
        technology("piezzo")
    ),
    "settings, field scale_up: must be at least 1 (got 0)": lambda: gpus(TECHNOLOGIES[0], 0),
    "a rail of 512 servers needs 1,024 ports, more than the 576 of Piezo (Polatis)": lambda: fits(
        technology("piezo"), 512
    ),
    "settings, field parameters: must be": lambda: advise(0, 8),
    "field parameters: must be": lambda: advise(float("nan"), 8),
    "settings, field gpus: must be": lambda: advise(1e9, 0),
    "field gpus: must be": lambda: advise(1e9, True),
    "field nic_ports": lambda: constraints(PRESET, 0),
    "field latency_us": lambda: constraints(PRESET, 2, -1.0),
    "did you mean 'llama3-70b'": lambda: preset("llama3-70"),
}


@pytest.mark.parametrize("line", REFUSED)
def test_what_cannot_be_is_told_in_one_line(line: str) -> None:
    with pytest.raises(InputError) as told:
        REFUSED[line]()
    assert line in str(told.value)
    assert "\n" not in str(told.value)
