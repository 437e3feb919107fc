"""Values kept by key, so many and no more."""

import threading
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

ValueT = TypeVar("ValueT")


class Latest(OrderedDict[Any, ValueT], Generic[ValueT]):
    """Values by key, the oldest beyond ``most`` dropped first; any thread may add."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most
        self._adding = threading.Lock()

    def __setitem__(self, key: Hashable, value: ValueT) -> None:
        with self._adding:
            super().__setitem__(key, value)
            self.move_to_end(key)
            while len(self) > self._most:
                self.popitem(last=False)
