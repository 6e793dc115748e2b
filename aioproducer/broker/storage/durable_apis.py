"""The APIs of a node with a data directory: no answer reveals a change that a crash could undo.

A request is handled at once, and the next one sees its changes. Its answer leaves only when everything that had changed
by then is committed: its own changes, and those of others that the answer may reveal (acknowledgements, fetched
records, offsets, producer ids, ends of transactions). One rule covers all APIs, and their handlers do not know it. A
client's next request waits for the answer to this one, so answers keep their order.
"""

from __future__ import annotations

from aioproducer.broker.requests.request import Request, WrappedRequest
from aioproducer.broker.requests.request_handler import RequestHandler
from aioproducer.broker.storage.committer import Committer
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.messages.produce import ProduceResponse
from aioproducer.protocol.schema import Response

_FAILED = "the data directory has failed"


class DurableApis:
    """Stands between a node's processor and its APIs."""

    def __init__(self, apis: RequestHandler, committer: Committer) -> None:
        self._apis = apis
        self._committer = committer

    def is_supported(self, api_key: int, api_version: int) -> bool:
        return self._apis.is_supported(api_key, api_version)

    def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
        self._apis.handle(_DurableRequest(request, self._committer), frame, body_at)


class _DurableRequest(WrappedRequest):
    """A request that ends after the next commit."""

    __slots__ = ("_committer",)

    def __init__(self, request: Request, committer: Committer) -> None:
        super().__init__(request)
        self._committer = committer

    def respond(self, response: Response, version: int | None = None) -> None:
        def ended(committed: bool) -> None:
            if self.abandoned:
                return
            if committed:
                self._request.respond(response, version)
            elif isinstance(response, ProduceResponse):
                self._request.respond(_not_stored(response), version)
            else:
                self._request.close_connection(_FAILED)

        self._committer.when_committed(ended)

    def no_response(self) -> None:
        def ended(committed: bool) -> None:
            if self.abandoned:
                return
            if committed:
                self._request.no_response()
            else:
                self._request.close_connection(_FAILED)

        # Even without a response the request waits: a client that is faster than the disk must not fill the memory.
        self._committer.when_committed(ended)

    def close_connection(self, reason: str, response: Response | None = None) -> None:
        self._request.close_connection(reason, response)


def _not_stored(response: ProduceResponse) -> ProduceResponse:
    for topic in response.responses:
        for partition in topic.partition_responses:
            if partition.error_code == ErrorCode.NONE:
                partition.error_code = ErrorCode.KAFKA_STORAGE_ERROR
                partition.error_message = f"not acknowledged: {_FAILED}"
                partition.base_offset = partition.log_append_time_ms = partition.log_start_offset = -1
    return response
