"""Tools for tests of Kafka programs: an embedded cluster with scripted faults, and real brokers.

    ThreadedCluster      the embedded cluster, for use from any thread
    FaultScript          what goes wrong in it, and when
    MockProducer         a producer without brokers, and what its calls raise (MockErrors)
    SyncMockProducer     the same for threads
    ApiKey, ErrorCode    the requests and errors that scripts name

``docs/testing.md`` explains them; pytest has the cluster as fixtures (``pytest_broker.py``). The producer imports
nothing from here, and each name is imported only when it is used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aioproducer.error_code import ErrorCode
    from aioproducer.protocol.api_key import ApiKey
    from aioproducer.testing.fault_rule import FaultRule, FaultScriptError, Hit
    from aioproducer.testing.fault_script import FaultScript
    from aioproducer.testing.mock_errors import MockErrors
    from aioproducer.testing.mock_producer import MockProducer
    from aioproducer.testing.sync_mock_producer import SyncMockProducer
    from aioproducer.testing.threaded_cluster import ThreadedCluster

_HOMES = {
    "ApiKey": "aioproducer.protocol.api_key",
    "ErrorCode": "aioproducer.error_code",
    "FaultRule": "aioproducer.testing.fault_rule",
    "FaultScript": "aioproducer.testing.fault_script",
    "FaultScriptError": "aioproducer.testing.fault_rule",
    "Hit": "aioproducer.testing.fault_rule",
    "MockErrors": "aioproducer.testing.mock_errors",
    "MockProducer": "aioproducer.testing.mock_producer",
    "SyncMockProducer": "aioproducer.testing.sync_mock_producer",
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
    value = globals()[name] = getattr(import_module(_HOMES[name]), name)
    return value
