from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator

import pytest

from aioproducer.tasks.background_threads import BackgroundThreads


class Works:
    """Works that end when they may, and how many of them there are at once."""

    def __init__(self, size: int) -> None:
        self.pool = BackgroundThreads("pool", size)
        self.may_end = threading.Semaphore(0)
        self.begun: list[int] = []
        self.threads: set[str] = set()

    def start(self, count: int) -> list[asyncio.Future[int]]:
        def work(number: int) -> int:
            self.threads.add(threading.current_thread().name)
            self.begun.append(number)
            self.may_end.acquire()
            return number

        return [self.pool.run(lambda number=number: work(number)) for number in range(count)]  # type: ignore[misc]

    async def until_begun(self, count: int) -> None:
        while len(self.begun) < count:  # noqa: ASYNC110 - they begin in threads
            await asyncio.sleep(0)


@pytest.fixture
async def works() -> AsyncIterator[Works]:
    works = Works(2)
    yield works
    works.pool.close()
    works.may_end.release(100)


async def test_so_many_at_once_and_the_others_in_their_order(works: Works) -> None:
    done = works.start(5)
    await works.until_begun(2)
    assert sorted(works.begun) == [0, 1]
    for count in range(3, 6):
        works.may_end.release()
        await works.until_begun(count)
        assert len(works.begun) == count
        assert works.begun[count - 1] == count - 1
    works.may_end.release(2)
    assert await asyncio.gather(*done) == [0, 1, 2, 3, 4]
    assert works.threads <= {"pool_0", "pool_1"}


async def test_it_grows_and_shrinks_while_it_works(works: Works) -> None:
    done = works.start(8)
    await works.until_begun(2)
    works.pool.resize(4)
    await works.until_begun(4)
    works.pool.resize(1)
    works.may_end.release(3)
    await asyncio.wait(done, return_when=asyncio.FIRST_COMPLETED)
    while sum(one.done() for one in done) < 3:  # noqa: ASYNC110 - they end in threads
        await asyncio.sleep(0)
    assert len(works.begun) == 4, "one is under way, and no more may be"
    works.may_end.release()
    await works.until_begun(5)
    works.may_end.release(4)
    assert await asyncio.gather(*done) == list(range(8))


async def test_an_error_is_that_of_its_work_alone(works: Works) -> None:
    works.may_end.release(1)
    with pytest.raises(ZeroDivisionError):
        await works.pool.run(lambda: 1 // 0)
    assert await works.start(1)[0] == 0


async def test_waiting_work_is_cancelled_by_close(works: Works) -> None:
    done = works.start(3)
    await works.until_begun(2)
    works.pool.close()
    assert works.pool.run(int).cancelled(), "nothing begins any more"
    works.may_end.release(2)
    assert await asyncio.gather(*done[:2]) == [0, 1]
    assert done[2].cancelled()
    assert len(works.begun) == 2


async def test_a_cancelled_wait_leaves_no_work_behind(works: Works) -> None:
    done = works.start(3)
    await works.until_begun(2)
    done[2].cancel()
    works.may_end.release(2)
    await asyncio.gather(*done[:2])
    works.may_end.release()
    assert await works.pool.run(lambda: "another") == "another"
    assert len(works.begun) == 2
