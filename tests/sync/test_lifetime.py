"""Producers that nobody closes, and those in a process that was forked, as Celery's pool forks."""

from __future__ import annotations

import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import pytest

from aioproducer.testing import ThreadedCluster

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="nothing is forked here")

PRELUDE = """
import os, sys, threading, warnings
from aioproducer.errors import IllegalStateException
from aioproducer.sync import KafkaProducer

# Python 3.12 warns of any fork with threads about, which is what is tested here.
warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)

def in_child(work):
    child = os.fork()
    if child == 0:
        status = 1
        try:
            work()
            status = 0
        finally:
            sys.stdout.flush()
            os._exit(status)
    assert os.waitpid(child, 0)[1] == 0

def refused(call, *arguments):
    try:
        call(*arguments)
    except IllegalStateException as error:
        assert "forked" in str(error), error
    else:
        raise AssertionError(f"{call} may be used in the child")
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[ThreadedCluster]:
    with ThreadedCluster() as cluster:
        yield cluster


def run_python(cluster: ThreadedCluster, script: str) -> str:
    """Runs a script with ``servers``; what it wrote."""
    start = f"{PRELUDE}\nservers = {cluster.bootstrap_servers!r}\n"
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", start + textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=40,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "Warning" not in said, said
    return said


def values(cluster: ThreadedCluster, topic: str) -> list[bytes | None]:
    return sorted((record.value for record in cluster.records(topic)), key=str)


def test_the_end_of_the_interpreter_delivers_what_was_accepted(cluster: ThreadedCluster) -> None:
    run_python(
        cluster,
        """
        servers = servers.replace("127.0.0.1", "localhost")  # a name is looked up in a thread of another kind

        def make():
            # Whatever is compressed is so in threads, which end before.
            compressed = {"compression_type": "gzip", "compression_thread_bytes": 0}
            return KafkaProducer(bootstrap_servers=servers, linger_ms=60_000, delivery_timeout_ms=120_000, **compressed)

        def work(producer):
            threading.main_thread().join()
            producer.send("exit", b"of a thread that goes on after the main one")

        def main():
            producer = make()
            producer.send("exit", b"of the main thread")
            threading.Thread(target=work, args=(producer,)).start()
            make().send("exit", b"through one that was let go of")

        main()
        """,
    )
    assert values(cluster, "exit") == [
        b"of a thread that goes on after the main one",
        b"of the main thread",
        b"through one that was let go of",
    ]


def test_a_producer_that_was_used_is_refused_in_the_child_and_goes_on_in_the_parent(cluster: ThreadedCluster) -> None:
    said = run_python(
        cluster,
        """
        producer = KafkaProducer(bootstrap_servers=servers, linger_ms=60_000, delivery_timeout_ms=120_000)
        done = producer.send("used", b"0")
        producer.flush()
        pending = producer.send("used", b"1")

        def child():
            for call in (producer.start, producer.flush, producer.close, producer.init_transactions, pending.result):
                refused(call)
            refused(producer.send, "used", b"of the child")
            refused(producer.send_many, "used", [b"of the child"])
            refused(pending.add_done_callback, print)
            assert done.result().offset == 0  # that is known here as well
            assert not pending.done()

        in_child(child)
        producer.close()
        print("offsets", done.result().offset, pending.result().offset)
        """,
    )
    assert "offsets 0 1" in said
    assert values(cluster, "used") == [b"0", b"1"]


def test_a_child_that_ends_as_any_program_does_not_hang(cluster: ThreadedCluster) -> None:
    """Not by ``os._exit``: with everything that happens at the end of an interpreter."""
    said = run_python(
        cluster,
        """
        producer = KafkaProducer(bootstrap_servers=servers)
        producer.send("ends", b"of the parent").result()
        if os.fork() == 0:
            print("child", flush=True)
            sys.exit()
        assert os.wait()[1] == 0
        producer.send("ends", b"over the same connection").result()
        """,
    )
    assert said.count("child") == 1
    assert values(cluster, "ends") == [b"of the parent", b"over the same connection"]


def test_a_producer_that_was_made_and_not_used_serves_each_child(cluster: ThreadedCluster) -> None:
    """The recipe for Celery (docs/threads.md): made where the module is imported, used by the pool's processes."""
    run_python(
        cluster,
        """
        producer = KafkaProducer(bootstrap_servers=servers)

        def child():
            producer.send("pool", b"%d" % os.getppid()).result(timeout=30)
            producer.close(timeout=10)

        in_child(child)
        in_child(child)
        producer.send("pool", b"%d" % os.getpid()).result(timeout=30)
        """,
    )
    assert len(cluster.records("pool")) == 3
    assert len(set(values(cluster, "pool"))) == 1  # the parent of both is the third


def test_each_child_has_a_producer_beside_the_parents(cluster: ThreadedCluster) -> None:
    """While other threads of the parent are in the middle of sending."""
    run_python(
        cluster,
        """
        parents = KafkaProducer(bootstrap_servers=servers)
        parents.send("beside", b"p").result()
        going = True

        def send():
            while going:
                parents.send("beside", b"p").result()

        threads = [threading.Thread(target=send) for _ in range(2)]
        for thread in threads:
            thread.start()

        def child():
            refused(parents.send, "beside", b"p")
            with KafkaProducer(bootstrap_servers=servers) as mine:
                mine.send("beside", b"c").result(timeout=30)

        for _ in range(5):
            in_child(child)
        going = False
        for thread in threads:
            thread.join()
        parents.close()
        """,
    )
    assert [value for value in values(cluster, "beside") if value == b"c"] == [b"c"] * 5
