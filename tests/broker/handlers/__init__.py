"""The handlers over a real socket, with the batches and the client of ``raw_clients``."""

from __future__ import annotations

from tests.broker.raw_clients.batches import NOW_MS, make_batch
from tests.broker.raw_clients.raw_client import Connect, RawClient

__all__ = ["NOW_MS", "Connect", "RawClient", "make_batch"]
