"""The end of a job whose Spark has died, without Spark."""

from __future__ import annotations

import threading
from unittest.mock import MagicMock

import pytest

from aioproducer.spark.spark_job import run_job


async def test_the_error_of_a_job_is_raised_although_nothing_can_be_cancelled() -> None:
    session = MagicMock()
    session.sparkContext.cancelJobsWithTag.side_effect = ConnectionError("the JVM is gone")
    threads: list[threading.Thread] = []

    def fail() -> None:
        threads.append(threading.current_thread())
        raise LookupError("the job has failed")

    with pytest.raises(LookupError, match="the job has failed") as caught:
        await run_job(session, fail)
    (note,) = caught.value.__notes__
    assert note == "the jobs of Spark could not be cancelled: ConnectionError: the JVM is gone"
    threads[0].join(20)
    assert not threads[0].is_alive()
