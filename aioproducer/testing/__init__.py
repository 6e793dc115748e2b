"""Tools for tests of Kafka programs: an embedded cluster with scripted faults, mocks, and real brokers.

    ThreadedCluster      the embedded cluster, for use from any thread
    FaultScript          its faults, and when they apply
    MockProducer         a producer without brokers; MockErrors are the errors that its calls raise
    SyncMockProducer     the same for threads
    ApiKey, ErrorCode    the requests and errors that scripts name

``docs/testing.md`` explains them. The producer imports nothing from here, and each name is imported only when it is
used. The files:

    threaded_cluster.py  the embedded cluster in its own thread
    pytest_broker.py     the pytest fixtures of the embedded cluster
    faults/              scripts of faults
    mock/                producers without brokers
    kafka/               clusters of real Kafka, and its tools
    pytest_kafka.py      pytest fixtures of real Kafka
    jvm_server.py        servers of other projects
    keycloak.py          a real identity provider
    apicurio.py          a real schema registry
    postgresql.py        a real database
    process_guard.py     child processes that cannot outlive this one
    server_process.py    a port and the log's last lines, for servers in processes of their own
    delivered.py         checks that every record was delivered once and in order
    slow_line.py         a proxy that delays every byte
    simulate.py          the command that runs the simulation
    simulation/          producers and brokers in virtual time, under faults
    transactions/        campaigns of transactions on real Kafka
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioproducer.errors.error_code import ErrorCode
    from aioproducer.protocol.api_key import ApiKey
    from aioproducer.testing.faults.fault_rule import FaultRule, FaultScriptError, Hit
    from aioproducer.testing.faults.fault_script import FaultScript
    from aioproducer.testing.mock.mock_errors import MockErrors
    from aioproducer.testing.mock.mock_producer import MockProducer
    from aioproducer.testing.mock.sync_mock_producer import SyncMockProducer
    from aioproducer.testing.threaded_cluster import ThreadedCluster

_HOMES = {
    "ApiKey": "aioproducer.protocol.api_key",
    "ErrorCode": "aioproducer.errors.error_code",
    "FaultRule": "aioproducer.testing.faults.fault_rule",
    "FaultScript": "aioproducer.testing.faults.fault_script",
    "FaultScriptError": "aioproducer.testing.faults.fault_rule",
    "Hit": "aioproducer.testing.faults.fault_rule",
    "MockErrors": "aioproducer.testing.mock.mock_errors",
    "MockProducer": "aioproducer.testing.mock.mock_producer",
    "SyncMockProducer": "aioproducer.testing.mock.sync_mock_producer",
    "ThreadedCluster": "aioproducer.testing.threaded_cluster",
}

__all__ = [
    "ApiKey",
    "ErrorCode",
    "FaultRule",
    "FaultScript",
    "FaultScriptError",
    "Hit",
    "MockErrors",
    "MockProducer",
    "SyncMockProducer",
    "ThreadedCluster",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    except AttributeError as error:  # from ... import would drop it, and say no more than that the name is missing
        raise ImportError(f"cannot import {name!r} from {__name__!r}: {error}") from error
    return value
