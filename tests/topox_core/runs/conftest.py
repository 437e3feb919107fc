"""Worker processes that tests share, where none of them is to end."""

from collections.abc import Iterator

import pytest

from topox_core.runs.executor import LocalExecutor


@pytest.fixture(scope="package")
def workers() -> Iterator[LocalExecutor]:
    with LocalExecutor(2) as executor:
        yield executor
