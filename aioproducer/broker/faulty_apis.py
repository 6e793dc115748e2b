"""The APIs of a node with faults."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

from aioproducer.broker.faults.faults import ReceivedRequest, RequestFault
from aioproducer.broker.handlers.context import BrokerContext
from aioproducer.broker.requests.request import Request, WrappedRequest
from aioproducer.broker.requests.request_handler import RequestHandler
from aioproducer.errors.error_code import ErrorCode
from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.api_keys import APIS
from aioproducer.protocol.framing import encode_response
from aioproducer.protocol.schema import Response


class FaultyApis:
    """Stands between a node's processor and its APIs, and loses, delays or damages requests and responses."""

    def __init__(self, apis: RequestHandler, context: BrokerContext) -> None:
        self._apis = apis
        self._context = context

    def is_supported(self, api_key: int, api_version: int) -> bool:
        return self._apis.is_supported(api_key, api_version)

    def handle(self, request: Request, frame: bytes | memoryview, body_at: int) -> None:
        context = self._context
        received = ReceivedRequest(context.node_id, request.header, frame, body_at, context.state)
        fault = context.faults.on_request(received)
        if fault is None:
            self._apis.handle(request, frame, body_at)
        elif fault.lost:
            request.close_connection("a fault: its request is lost")
        elif fault.code is not ErrorCode.NONE:
            response: Any = APIS[ApiKey(request.header.api_key)].response
            request.respond(response(error_code=fault.code))
        elif fault.response is not None:
            request.respond(fault.response)
        elif fault.handled_after > 0:
            late = _FaultyRequest(request, fault)
            handle = partial(self._apis.handle, late, frame, body_at)
            # If the node stops meanwhile, the request is lost with its handlers.
            asyncio.get_running_loop().call_later(fault.handled_after, late.call_back, handle)
        else:
            self._apis.handle(_FaultyRequest(request, fault), frame, body_at)


class _FaultyRequest(WrappedRequest):
    """A request with a fault at its end."""

    __slots__ = ("_fault",)

    def __init__(self, request: Request, fault: RequestFault) -> None:
        super().__init__(request)
        self._fault = fault

    def respond(self, response: Response, version: int | None = None) -> None:
        if self._fault.edit is not None:
            self._fault.edit(response)
        if self._fault.unanswered:
            self.close_connection("a fault: its response is lost")
        elif self._fault.silent:
            pass  # the channel stays muted until its client disconnects
        elif self._fault.garbage is not None:
            if not self.abandoned:
                self._request.respond_bytes([self._fault.garbage])
        elif self._fault.cut_after is not None:
            self._cut(response, version, self._fault.cut_after)
        elif self._fault.answered_after > 0:
            asyncio.get_running_loop().call_later(self._fault.answered_after, self._respond_late, response, version)
        else:
            self._respond_late(response, version)

    def no_response(self) -> None:
        if not self.abandoned:
            self._request.no_response()

    def close_connection(self, reason: str, response: Response | None = None) -> None:
        if not self.abandoned:
            self._request.close_connection(reason, response)

    def _cut(self, response: Response, version: int | None, size: int) -> None:
        version = self.header.api_version if version is None else version
        whole = b"".join(encode_response(response, version=version, correlation_id=self.header.correlation_id))
        if not self.abandoned and size > 0:
            self._request.respond_bytes([whole[:size]])
        self.close_connection(f"a fault: its response is cut after {size} of {len(whole)} bytes")

    def _respond_late(self, response: Response, version: int | None) -> None:
        if not self.abandoned:
            self._request.respond(response, version)
