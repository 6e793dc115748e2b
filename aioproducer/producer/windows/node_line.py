"""What is known of the line to each node, and what follows for requests to it."""

from __future__ import annotations

from typing import final

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.producer.windows.frame_limit import FrameLimit
from aioproducer.producer.windows.line_limit import LineLimit
from aioproducer.producer.windows.line_window import LineWindow


@final
class NodeLine:
    """The line to one node: how large requests may be, and how many of them may be unanswered."""

    def __init__(self, limit: LineLimit, window: LineWindow) -> None:
        self.frames = FrameLimit()
        self.limit = limit
        self.window = window


@final
class NodeLines:
    """The lines to all nodes."""

    def __init__(self, config: ProducerConfig) -> None:
        self._config = config
        self._lines: dict[int, NodeLine] = {}

    def of(self, node: int) -> NodeLine:
        line = self._lines.get(node)
        if line is None:
            config = self._config
            line = self._lines[node] = NodeLine(
                LineLimit(
                    config.request_timeout_ms / 1000, config.retry_backoff_max_ms / 1000, config.max_request_size
                ),
                LineWindow(config.max_in_flight_requests_per_connection, config.batch_size),
            )
        return line
