"""What is known of the line to each node, and what follows for requests to it."""

from __future__ import annotations

from typing import final

from mypy_extensions import i64

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.producer.batches.producer_batch import LEAST_WHOLE, NO_LIMIT
from aioproducer.producer.windows.frame_limit import FrameLimit
from aioproducer.producer.windows.line_limit import LineLimit
from aioproducer.producer.windows.line_window import LineWindow
from aioproducer.producer.windows.send_buffer import SendBuffer
from aioproducer.producer.windows.timely_window import TimelyWindow


@final
class NodeLine:
    """The line to one node: how large requests may be, and how many of them may be unanswered."""

    def __init__(self, limit: LineLimit, window: LineWindow, timely: TimelyWindow, buffer: SendBuffer) -> None:
        self.frames = FrameLimit()
        self.limit = limit
        self.window = window
        self.timely = timely
        self.buffer = buffer

    def connected(self, greeting: float) -> None:
        """There is a connection, whose first answer took ``greeting`` seconds."""
        self.limit.connected(greeting)
        self.window.connected(greeting)
        self.timely.connected(greeting)

    def has_room_for_two(self) -> bool:
        """Whether no request with records is unanswered, and two may be. False before the first answer, and where there
        are none (acks=0)."""
        return self.window.unanswered == 0 and self.timely.places > 1 and self.limit.grown > 0

    def largest_batch(self, now: float) -> i64:
        """The most bytes of a batch of several records, which otherwise has to be split."""
        by_line = self.limit.most if self.limit.slow else NO_LIMIT
        return min(by_line, self.frames.largest_batch(now))

    def least_whole(self, now: float) -> i64:
        """The bytes of a batch up to which it is split only after several attempts: a line has other reasons to be
        slow, and a broker that has ended three connections has none."""
        return LEAST_WHOLE if self.frames.largest_batch(now) == NO_LIMIT else 0

    def connection_lost(self) -> None:
        """The next one may take another way."""
        self.window.connection_lost()


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
            most, timeout = config.max_in_flight_requests_per_connection, config.request_timeout_ms / 1000
            line = self._lines[node] = NodeLine(
                LineLimit(timeout, config.retry_backoff_max_ms / 1000, config.max_request_size, most - 1),
                LineWindow(most, config.batch_size),
                TimelyWindow(most, timeout),
                SendBuffer(config.send_buffer_bytes, grows=config.send_buffer_grows),
            )
        return line
