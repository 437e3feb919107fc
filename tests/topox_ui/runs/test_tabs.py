"""A tab that is reloaded gets its session back; one that is closed ends what it started; no tab gets another one's."""

from unittest.mock import Mock

import pytest

from tests.patience import wait_until
from topox_ui.runs.tabs import Connection, Tabs


@pytest.fixture
def tabs():
    known = Tabs(Mock, rejoin_s=60)
    yield known
    known.close()


def test_a_reloaded_tab_gets_its_own_session_back_and_nothing_of_it_has_ended(tabs):
    before, after = Connection(tabs, "one"), Connection(tabs, "two")
    tab, fresh = before.tab, after.tab
    tab.held["loaded"] = "mine"
    before.leave()
    assert after.move(tab.token)
    assert after.tab is tab and tab.held == {"loaded": "mine"}
    assert not tab.owner.close.called and fresh.owner.close.called


def test_two_tabs_stay_apart_even_if_one_was_made_by_duplicating_the_other(tabs):
    first, copy = Connection(tabs, "one"), Connection(tabs, "two")
    assert not copy.move(first.tab.token)
    assert copy.tab is not first.tab and copy.tab.token != first.tab.token


def test_of_two_tabs_that_say_they_are_the_same_only_one_gets_it(tabs):
    gone = Connection(tabs, "one")
    gone.leave()
    first, second = Connection(tabs, "two"), Connection(tabs, "three")
    assert [first.move(gone.tab.token), second.move(gone.tab.token)] == [True, False]


def test_a_connection_that_was_only_interrupted_goes_on_with_its_tab(tabs):
    before = Connection(tabs, "one")
    before.leave()
    assert before.left
    assert Connection(tabs, "one").tab is before.tab


def test_the_rest_of_a_script_whose_connection_has_ended_does_not_keep_its_tab():
    """The script goes on for a moment after its tab is closed, and asks for its connection again."""
    there = {"two"}
    tabs = Tabs(Mock, rejoin_s=0.05, connected=there.__contains__)
    gone, interrupted = Connection(tabs, "one"), Connection(tabs, "two")
    for one, session in ((gone, "one"), (interrupted, "two")):
        one.leave()
        assert Connection(tabs, session).tab is one.tab
    wait_until(lambda: gone.tab.owner.close.called)
    assert not interrupted.tab.owner.close.called and tabs.connected(interrupted.tab.token)


def test_what_a_closed_tab_started_ends_if_nobody_joins_it_again():
    tabs = Tabs(Mock, rejoin_s=0.05)
    connection = Connection(tabs, "one")
    connection.leave()
    wait_until(lambda: connection.tab.owner.close.called)
    assert not Connection(tabs, "two").move(connection.tab.token)


def test_a_tab_whose_minute_is_over_cannot_be_joined_while_it_ends(tabs, monkeypatch):
    gone = Connection(tabs, "one")
    gone.leave()
    joined = []
    monkeypatch.setattr(tabs, "end", lambda tab: joined.append(tabs.join(tab.token, "two")))
    tabs._expire(gone.tab)
    assert joined == [None]


def test_a_server_that_ends_ends_the_tabs_that_have_left(tabs):
    gone, here = Connection(tabs, "one"), Connection(tabs, "two")
    gone.leave()
    tabs.close()
    assert gone.tab.owner.close.called and not here.tab.owner.close.called
    here.leave()
    assert here.tab.owner.close.called


@pytest.mark.parametrize("guess", ["", "one", "0" * 43])
def test_an_id_cannot_be_guessed_and_a_wrong_one_changes_nothing(tabs, guess):
    left = [Connection(tabs, str(i)) for i in range(20)]
    for one in left:
        one.leave()
    tokens = {one.tab.token for one in left}
    assert len(tokens) == 20 and min(map(len, tokens)) >= 43, "256 bits each"
    assert not Connection(tabs, "me").move(guess)
