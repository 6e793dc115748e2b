"""Times the stages of requests, by API: Kafka's ``RequestMetrics``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aioproducer.broker.requests.request import Request
from aioproducer.metrics.histogram import Histogram
from aioproducer.metrics.sensor import Sensor
from aioproducer.protocol.api_key import ApiKey

HISTOGRAMS = {
    "RequestQueueTimeMs": "from received whole until a handler took it",
    "LocalTimeMs": "in the handler",
    "RemoteTimeMs": "waiting: a fetch for records, acks=all for replicas, a join for other members, all for the disk",
    "ThrottleTimeMs": "for which the client was throttled by its quota",
    "ResponseQueueTimeMs": "from the answer until the connection's processor took it",
    "ResponseSendTimeMs": "until the kernel had taken over all of it",
    "TotalTimeMs": "from received whole to written whole",
    "RequestBytes": "size of a request",
}
"""The histograms of an API, and what each measures."""


class RequestTimes:
    """How long each stage of one request took, in microseconds; 0 for a stage that it did not reach."""

    __slots__ = ("local", "remote", "request_queue", "response_queue", "response_send", "throttle", "total")

    def __init__(self, request: Request, now: float) -> None:
        ends = now
        taken = _reached(request.response_dequeue_time, ends)
        made = _reached(request.response_complete_time, taken)
        handled = min(_reached(request.api_local_complete_time, made), made)
        began = _reached(request.request_dequeue_time, handled)
        received = request.start_time
        self.request_queue = _microseconds(began - received)
        self.local = _microseconds(handled - began)
        self.remote = _microseconds(made - handled)
        self.throttle = request.throttle_time_ms * 1000
        self.response_queue = _microseconds(taken - made)
        self.response_send = _microseconds(ends - taken)
        self.total = _microseconds(ends - received)


def _reached(time: float, otherwise: float) -> float:
    return time if time >= 0 else otherwise


def _microseconds(seconds: float) -> int:
    return max(int(seconds * 1e6), 0)


class ApiMetrics:
    """The metrics of one API. Times are recorded in microseconds."""

    __slots__ = ("errors", "histograms", "rates")

    def __init__(self) -> None:
        self.histograms = tuple(Histogram() for _ in HISTOGRAMS)
        """In the order of :data:`HISTOGRAMS`."""
        self.rates: dict[int, Sensor] = {}
        """Requests, by version."""
        self.errors: dict[int, Sensor] = {}
        """Errors in responses, by code."""

    def record(self, version: int, times: RequestTimes, size: int, errors: Mapping[int, int], now: float) -> None:
        rate = self.rates.get(version)
        if rate is None:
            rate = self.rates[version] = Sensor()
        rate.record(1, now)
        for code, count in errors.items():
            rate = self.errors.get(code)
            if rate is None:
                rate = self.errors[code] = Sensor()
            rate.record(count, now)
        queue, local, remote, throttle, response_queue, send, total, bytes_ = self.histograms
        queue.record(times.request_queue, now)
        local.record(times.local, now)
        remote.record(times.remote, now)
        throttle.record(times.throttle, now)
        response_queue.record(times.response_queue, now)
        send.record(times.response_send, now)
        total.record(times.total, now)
        bytes_.record(size, now)


class RequestMetrics:
    """The metrics of all APIs of one node; each has them from its first request on."""

    def __init__(self) -> None:
        self._apis: dict[int, ApiMetrics] = {}

    def record(self, request: Request, times: RequestTimes, errors: Mapping[int, int], now: float) -> None:
        """Records a finished request; ``errors`` counts each error code of its response."""
        header = request.header
        api = self._apis.get(header.api_key)
        if api is None:
            api = self._apis[header.api_key] = ApiMetrics()
        api.record(header.api_version, times, request.size, errors, now)

    def __iter__(self) -> Iterator[tuple[str, ApiMetrics]]:
        return ((api_name(key), api) for key, api in self._apis.items())


def api_name(key: int) -> str:
    """The name of an API in Kafka's spelling: ``Produce``, ``ApiVersions``."""
    return ApiKey(key).name.title().replace("_", "")
