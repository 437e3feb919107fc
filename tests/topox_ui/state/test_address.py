"""The address: what a link says is what every page shows, Back undoes, a choice just made is never lost."""

from tests.topox_ui.conftest import SCHEDULE, address, control

JOBS, STRATEGY, TOPOLOGY = "pages/6_Jobs.py", "pages/5_Strategy.py", "pages/4_Topology.py"


def follow(at, page: str, **query: str):
    """Open a page in the same session at an address, as a menu link or the browser's Back does."""
    at.switch_page(page)
    at.query_params.clear()
    for key, text in query.items():
        at.query_params[key] = text
    return at.run()


def test_back_undoes_a_choice_even_to_an_address_that_says_nothing(visit):
    at = visit(STRATEGY)
    control(at, "strategy_budget").set_value(300).run()
    assert address(at) == {"strategy.budget": "300"}
    follow(at, STRATEGY)
    assert control(at, "strategy_budget").value == 1_000 and address(at) == {}
    follow(at, STRATEGY, **{"strategy.budget": "300"})
    assert control(at, "strategy_budget").value == 300


def test_a_menu_link_drawn_before_the_last_choice_does_not_undo_it(visit):
    at = visit(TOPOLOGY, sample="blackboard")
    drawn = dict(address(at))
    control(at, "degree").set_value(2).run()
    follow(at, SCHEDULE, **drawn)
    assert address(at) == {"sample": "blackboard", "degree": "2"}
    follow(at, TOPOLOGY, **address(at))
    assert control(at, "degree").value == 2


def test_the_choices_of_all_pages_are_in_the_address_of_each(visit):
    link = {"sample": "blackboard", "port_gbps": "40", "strategy.seed": "7", "cost.pue": "2"}
    at = visit("app.py", **link)
    assert not at.warning and address(at) == link
    follow(at, STRATEGY, **link)
    control(at, "strategy_budget").set_value(300).run()
    assert address(at) == link | {"strategy.budget": "300"}


def test_back_from_a_sample_to_an_address_without_one_keeps_it_loaded(visit):
    at = visit("app.py", sample="blackboard")
    follow(at, "app.py")
    assert at.session_state["loaded"].title == "blackboard"


def test_the_jobs_source_changes_and_back(visit):
    at = visit(JOBS)
    for source in ("generator", "sample", "graphs", "sample"):
        control(at, "jobs_source").set_value(source).run()
        assert not at.exception
        assert address(at).get("jobs.source", "sample") == source
