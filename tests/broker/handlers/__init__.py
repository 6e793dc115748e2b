"""The handlers over a real socket, with the batches and the client of the room above."""

from __future__ import annotations

from ..batches import NOW_MS, make_batch  # noqa: TID252
from ..raw_client import Connect, RawClient  # noqa: TID252

__all__ = ["NOW_MS", "Connect", "RawClient", "make_batch"]
