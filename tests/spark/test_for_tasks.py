"""Objects for tasks, where another version of the package is installed."""

from __future__ import annotations

import pickle

import pytest

from aioproducer.errors import IllegalStateException
from aioproducer.spark import for_tasks
from aioproducer.spark.for_tasks import ForTasks


class Work(ForTasks):
    def __init__(self) -> None:
        self.rows = 3


def test_a_task_has_what_the_driver_had() -> None:
    assert vars(pickle.loads(pickle.dumps(Work()))) == {"rows": 3}


def test_another_version_is_named_before_anything_is_made_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(for_tasks, "SOFTWARE_VERSION", "9.9.9")
    sent = pickle.dumps(Work()).replace(b"rows", b"r\xff\xff\xff")
    monkeypatch.undo()
    with pytest.raises(IllegalStateException, match=r"the driver has version 9\.9\.9 of aioproducer, and this worker "):
        pickle.loads(sent)
