"""Connections to a library's file, shared by threads: each uses one at a time, alone."""

from __future__ import annotations

import queue
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from topox_core.errors import InputError
from topox_core.library.opening import OpenedFile, errors_of

# Threads of a server come and go with every click; so many connections are kept for the next.
KEPT = 8


class Connections:
    """What reads and writes go through; any thread may use it."""

    def __init__(self, file: OpenedFile) -> None:
        self.file = file
        self._idle: queue.LifoQueue[sqlite3.Connection] = queue.LifoQueue(KEPT)

    @contextmanager
    def reading(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection to one thread.

        Raises
        ------
        InputError
            In place of any error of SQLite's in the block.
        """
        try:
            connection = self._idle.get_nowait()
        except queue.Empty:
            connection = self.file.connect()
        try:
            with errors_of(self.file.path):
                yield connection
        except BaseException:
            # Whatever state it is in; a transaction is rolled back. The file may have been damaged or
            # set aside: others begin anew as well.
            connection.close()
            self.close()
            raise
        try:
            self._idle.put_nowait(connection)
        except queue.Full:
            connection.close()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """Lend a connection within a transaction: all that the block writes is kept, or nothing of it.

        The transaction asks to write from its beginning. One that began by reading would fail at
        once where another process wrote meanwhile, however long it may wait.

        Raises
        ------
        InputError
            If the library can only be read, another program does not let go of it, or in place of
            any other error of SQLite's.
        """
        if self.file.read_only:
            problem = f"can only be read: {self.file.read_only}"
            raise InputError(problem, file=str(self.file.path))
        with self.reading() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.execute("COMMIT")

    def close(self) -> None:
        """Close what nobody uses at the moment."""
        with suppress(queue.Empty):
            while True:
                self._idle.get_nowait().close()
