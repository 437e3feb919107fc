"""Strategy, judged on a fabric: the page's figures are the core's, a link restores them, Cancel keeps the best."""

import pytest

from tests.patience import wait_until
from tests.topox_ui.conftest import address, choose, metric, press, the_error, words
from tests.topox_ui.conftest import table as table_of
from topox_core.fabrics.registry import FABRICS
from topox_core.strategy.fabric_table import strategy_table
from topox_core.strategy.models import named
from topox_core.strategy.moves import SearchSettings
from topox_core.strategy.on_fabrics import ModelOnCluster, cluster_of
from topox_core.text.numbers import time as time_words

STRATEGY = "pages/5_Strategy.py"
CHOICES = {
    "strategy.model": "dlrm-16",
    "strategy.servers": "2",
    "strategy.ports": "1",
    "strategy.port_gbps": "10",
    "strategy.network": "fabric",
    "strategy.fabric": "provisioned",
    "strategy.beside": "static",
    "strategy.delay_ms": "0.1",
    "strategy.proposals": "0",
}


def ended(at):
    wait_until(
        lambda: bool(at.error) or any(m.label == "Iteration time" for m in at.metric), at.run
    )
    assert not at.exception and not at.error
    return at


@pytest.mark.long
def test_the_page_opened_by_a_link_shows_what_the_core_finds_for_each_of_its_fabrics(visit) -> None:
    found = ended(press(visit(STRATEGY, **CHOICES), "search"))
    graph = named("dlrm-16").build(2)
    model = ModelOnCluster(graph, cluster_of(2, 1, 10.0, 0.1))
    settings = SearchSettings(0, memory_gb=graph.memory_gb)
    table = strategy_table(model, ("static", "provisioned"), settings)
    best = table.best("provisioned").outcomes["provisioned"]
    assert metric(found, "Iteration time") == time_words(best.iteration_ms).replace("\u00a0", " ")
    assert metric(found, "Lower bound") == time_words(best.bound_ms).replace("\u00a0", " ")
    shown = table_of(found, "strategy")
    assert len(shown) == len(table.rows)
    label = FABRICS["provisioned"]
    ours = [row.outcomes["provisioned"] for row in table.rows]
    assert [f"{one.iteration_ms:.6g} ({one.bound_ms:.6g})" for one in ours] == list(shown[label])
    assert f"{label}: the strategy found for it takes" in words(found)
    assert {key: address(found)[key] for key in CHOICES if key != "strategy.model"} == {
        key: value for key, value in CHOICES.items() if key != "strategy.model"
    }

    # The other fabric of the same table needs no new search.
    choose(found, strategy_fabric="static", strategy_beside=["provisioned"])
    assert any(m.label == "Iteration time" for m in found.metric)
    assert FABRICS["static"] in words(found)


@pytest.mark.long
def test_a_search_that_is_cancelled_keeps_a_strategy(visit) -> None:
    at = visit(STRATEGY, **CHOICES | {"strategy.proposals": "1000", "strategy.servers": "8"})
    press(at, "search")
    wait_until(lambda: "proposals" in at.get("progress")[0].proto.text, at.run)
    ended(press(at, "cancel_on_fabric"))
    assert any(m.delta == "stopped by you" for m in at.metric)


def test_a_delay_that_no_switch_has_is_one_line(visit) -> None:
    at = visit(STRATEGY, **CHOICES | {"strategy.delay_ms": "1e9"})
    press(at, "search")
    wait_until(lambda: bool(at.error), at.run)
    assert "reconfiguration_ms" in the_error(at)
