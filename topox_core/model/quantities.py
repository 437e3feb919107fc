"""Quantities that many records have: range, unit and what sliders offer, said once for all of them.

A record says in its own words what its field is for: ``Annotated[Gbps, setting("NIC")]``. What is
named in no unit of its own here (a server's GPUs, say) may differ from record to record.
"""

from typing import Annotated

from topox_core.schema.fields import setting

# Beyond these nothing real comes near, and within them no time overflows.
MIN_GBPS, MAX_GBPS = 1e-6, 1e12
MAX_MS = 1e12

# What sliders and menus offer everywhere. Delays from electro-optic switches (microseconds) to patch
# panels (seconds).
DELAYS_MS = (
    *(0.0, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0),
    *(10.0, 15.0, 25.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 3000.0),
)
SPEEDS_GBPS = (10.0, 25.0, 40.0, 50.0, 100.0, 150.0, 200.0, 400.0, 800.0, 1600.0)
# Of ports, switches, rings or copies.
SMALL_COUNTS = (1, 2, 3, 4, 6, 8)

Gbps = Annotated[
    float, setting("Port speed", "Gbit/s", ge=MIN_GBPS, le=MAX_GBPS, steps=SPEEDS_GBPS)
]
DelayMs = Annotated[float, setting("Reconfiguration delay", "ms", ge=0, le=MAX_MS, steps=DELAYS_MS)]
LatencyUs = Annotated[float, setting("Latency", "us", ge=0, le=1e3 * MAX_MS)]
