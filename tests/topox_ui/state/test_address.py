"""The address: what a link says is what every page shows, Back undoes, a choice just made is never lost."""

from tests.topox_ui.conftest import SCHEDULE, address, choose, control, unbroken

JOBS, STRATEGY, TOPOLOGY = "pages/6_Jobs.py", "pages/5_Strategy.py", "pages/4_Topology.py"
COMPARE = "pages/3_Compare.py"


def follow(at, page: str, **query: str):
    """Open a page in the same session at an address, as a menu link or the browser's Back does."""
    at.switch_page(page)
    at.query_params.clear()
    for key, text in query.items():
        at.query_params[key] = text
    return unbroken(at.run())


def test_back_undoes_a_choice_even_to_an_address_that_says_nothing(visit):
    at = choose(visit(STRATEGY), strategy_budget=300)
    assert address(at) == {"strategy.budget": "300"}
    follow(at, STRATEGY)
    assert control(at, "strategy_budget").value == 1_000 and address(at) == {}
    follow(at, STRATEGY, **{"strategy.budget": "300"})
    assert control(at, "strategy_budget").value == 300
    at = visit("app.py", sample="blackboard")
    assert follow(at, "app.py").session_state["loaded"].title == "blackboard", "kept"


def test_a_menu_link_drawn_before_the_last_choice_does_not_undo_it(visit):
    at = visit(TOPOLOGY, sample="blackboard")
    drawn = dict(address(at))
    choose(at, degree=2)
    follow(at, SCHEDULE, **drawn)
    assert address(at) == {"sample": "blackboard", "degree": "2"}
    assert control(follow(at, TOPOLOGY, **address(at)), "degree").value == 2


def test_the_choices_of_all_pages_are_in_the_address_of_each(visit):
    link = {"sample": "blackboard", "port_gbps": "40", "strategy.seed": "7", "cost.pue": "2"}
    at = visit("app.py", **link)
    assert not at.warning and address(at) == link
    follow(at, STRATEGY, **link)
    choose(at, strategy_budget=300)
    assert address(at) == link | {"strategy.budget": "300"}
    link = address(choose(follow(at, COMPARE, **address(at)), fabrics=["static", "scheduled"]))
    assert link["fabrics"] == "static,scheduled"
    follow(at, JOBS, **link)
    for source in ("graphs", "sample"):
        choose(at, jobs_source=source)
        assert address(at).get("jobs.source", "sample") == source
