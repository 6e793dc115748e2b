"""Objects that the driver sends to its tasks."""

from __future__ import annotations

import pickle
from typing import Any

from aioproducer.errors import IllegalStateException
from aioproducer.net.link_task import SOFTWARE_VERSION


class ForTasks:
    """An object that is pickled on the driver and unpickled by a task.

    Where another version of the package is installed, unpickling raises IllegalStateException before it looks at
    anything that may have changed from one to the other.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _unpacked, (SOFTWARE_VERSION, type(self), pickle.dumps(self.__getstate__()))


def _unpacked(version: str, kind: type, state: bytes) -> Any:
    if version != SOFTWARE_VERSION:
        raise IllegalStateException(
            f"the driver has version {version} of aioproducer, and this worker {SOFTWARE_VERSION}: install the same "
            "version on the driver and on every executor"
        )
    made: Any = object.__new__(kind)
    made.__dict__.update(pickle.loads(state))
    return made
