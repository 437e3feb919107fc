"""A browser tab keeps its session over a reload: what it held waits a minute to be joined again by the tab's own id.

The id is random, made here, and known to nobody but the tab, which keeps it in its session storage:
it stands in no address and in no cookie, which other tabs would share.
"""

import secrets
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False)
class Tab:
    """What one browser tab has on this server.

    Attributes
    ----------
    owner
        Of its runs: it is closed with the tab.
    session
        Streamlit's id of the connection that it has, or had last.
    held
        What its pages remembered when they were last drawn.
    here
        Whether it is connected.
    expiry
        Ends it once it was away for too long; one that never starts while it was never away.
    """

    owner: Any
    session: str
    token: str = field(default_factory=lambda: secrets.token_urlsafe(32), repr=False)
    held: dict[str, Any] = field(default_factory=dict)
    here: bool = True
    expiry: threading.Timer = field(default_factory=lambda: threading.Timer(0.0, bool))


class Tabs:
    """All tabs of this server, and those that left a moment ago.

    Parameters
    ----------
    make
        Makes the owner of a new tab's runs.
    rejoin_s
        How long a tab that left may come back.
    connected
        Whether a connection is there, by its id; by itself every one that has an id.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        rejoin_s: float,
        connected: Callable[[str], bool] = bool,
    ) -> None:
        self._make, self._rejoin_s, self._connected = make, rejoin_s, connected
        self._lock = threading.Lock()
        self._tabs: dict[str, Tab] = {}
        self._closed = False

    def begin(self, session: str) -> Tab:
        """Return the tab of a connection: a new one, unless the very same connection was only interrupted."""
        with self._lock:
            known = next((t for t in self._tabs.values() if t.session == session), None)
            if known is not None and not known.here:
                self._take_back(known, session)
                # Who asks may be the rest of a script whose connection has just ended: nothing would
                # end this tab any more.
                self._wait(known)
                return known
        tab = Tab(self._make(), session)
        with self._lock:
            self._tabs[tab.token] = tab
        return tab

    def join(self, token: str, session: str) -> Tab | None:
        """Return the tab that left with this id; None where there is none, or it is still connected."""
        with self._lock:
            tab = self._tabs.get(token)
            return None if tab is None or tab.here else self._take_back(tab, session)

    def connected(self, token: str) -> bool:
        """Return whether the tab with this id is connected now."""
        with self._lock:
            tab = self._tabs.get(token)
            return tab is not None and tab.here

    def leave(self, tab: Tab) -> None:
        """Note that a tab's connection has ended; unless it comes back, what it started ends."""
        with self._lock:
            tab.here = False
            waits = self._rejoin_s > 0 and not self._closed
            if waits:
                self._wait(tab)
        if not waits:
            self.end(tab)

    def end(self, tab: Tab) -> None:
        """Forget a tab, and end what it started."""
        with self._lock:
            self._tabs.pop(tab.token, None)
            tab.expiry.cancel()
        tab.owner.close()

    def close(self) -> None:
        """End every tab that has left, and from now on those that leave, at once."""
        with self._lock:
            self._closed = True
            left = [tab for tab in self._tabs.values() if not tab.here]
        for tab in left:
            self.end(tab)

    def _take_back(self, tab: Tab, session: str) -> Tab:
        tab.expiry.cancel()
        tab.here, tab.session = True, session
        return tab

    def _wait(self, tab: Tab) -> None:
        tab.expiry.cancel()
        tab.expiry = threading.Timer(self._rejoin_s, self._expire, (tab,))
        tab.expiry.daemon = True
        tab.expiry.start()

    def _expire(self, tab: Tab) -> None:
        with self._lock:
            if tab.here and self._connected(tab.session):
                return
            self._tabs.pop(tab.token, None)  # from here on nobody can join it again
        self.end(tab)


class Connection:
    """A connection to the server, and the tab that it belongs to, which the browser may say is another one."""

    def __init__(self, tabs: Tabs, session: str) -> None:
        self._tabs, self._session = tabs, session
        self.tab = tabs.begin(session)
        self.left = False

    def move(self, token: str) -> bool:
        """Go over to the tab with this id; return False if that is not allowed."""
        joined = self._tabs.join(token, self._session)
        if joined is None:
            return False
        self._tabs.end(self.tab)
        self.tab = joined
        return True

    def leave(self) -> None:
        """Leave: the connection has ended."""
        self.left = True
        self._tabs.leave(self.tab)
