"""Gets the producer id by InitProducerId, if there is none or the present one is no longer usable."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random

from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.errors import AuthenticationException, AuthorizationException, KafkaError, error_for, with_advice
from aioproducer.errors.error_code import ErrorCode
from aioproducer.net.client import KafkaClient
from aioproducer.producer.idempotence.producer_ids import ProducerIdAndEpoch, ProducerIds
from aioproducer.protocol.messages.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from aioproducer.tasks.supervisor import Supervisor
from aioproducer.timing.backoff import ExponentialBackoff

log = logging.getLogger(__name__)

_NO_TIMEOUT = 2**31 - 1
"""transaction_timeout_ms of a producer without transactions."""


class ProducerIdSource:
    """Requests an id, and reports the result.

    ``on_id()`` is called when there is an id; ``on_refused(error)`` when the broker refuses permission or
    authentication: that may change later, so only pending records fail, and the next record asks again;
    ``on_fatal(error)`` when the refusal is final.
    """

    def __init__(
        self,
        config: ProducerConfig,
        client: KafkaClient,
        ids: ProducerIds,
        supervisor: Supervisor,
        random: Random,
        *,
        on_id: Callable[[], None],
        on_refused: Callable[[KafkaError], None],
        on_fatal: Callable[[KafkaError], None],
    ) -> None:
        self.ids = ids
        self._config = config
        self._client = client
        self._supervisor = supervisor
        self._backoff = ExponentialBackoff(config.retry_backoff_ms, config.retry_backoff_max_ms, random)
        self._on_id = on_id
        self._on_refused = on_refused
        self._on_fatal = on_fatal
        self.last_error: KafkaError | None = None
        """Why the last request brought no id."""
        self._asking = False
        self._refused = False

    def missing(self) -> bool:
        """Whether an idempotent producer has no id to send under."""
        return self._config.enable_idempotence and self.ids.current is None

    def ask_if_missing(self, *, work: bool) -> None:
        """Requests an id if needed; ``work``: records are waiting for it. A transactional producer's comes with
        init_transactions().
        """
        if self._config.transactional_id is not None or self._asking:
            return
        if self.missing() and (work or not self._refused):
            self._asking = True
            self._supervisor.launch(self._ask(), "aioproducer InitProducerId")

    async def _ask(self) -> None:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=_NO_TIMEOUT)
        failures = 0
        while self.ids.current is None:
            try:
                response = await self._client.request(request, InitProducerIdResponse)
                if response.error_code != ErrorCode.NONE:
                    raise error_for(
                        response.error_code,
                        f"the producer was refused a producer id: {with_advice('', response.error_code)}",
                    )
                self.ids.given(ProducerIdAndEpoch(response.producer_id, response.producer_epoch))
                self.last_error = None
            except KafkaError as error:
                self.last_error = error
                refused = isinstance(error, AuthorizationException | AuthenticationException)
                if not refused and not error.retriable:
                    self._on_fatal(error)
                    return
                log.debug("InitProducerId failed: %s", error)
                failures += 1
                if refused:
                    self._on_refused(error)
                await asyncio.sleep(self._backoff.wait(failures))
                if refused:
                    self._refused = True
                    break
        self._asking = False
        self._on_id()
