"""A cluster's data directory in use: from opening it to letting go of it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from aioproducer.broker.coordinators.transaction_coordinator import TransactionCoordinator
from aioproducer.broker.requests.request_handler import RequestHandler
from aioproducer.broker.state.cluster_state import ClusterState
from aioproducer.broker.storage.clean_shutdown import CLEAN_SHUTDOWN, write_clean_shutdown
from aioproducer.broker.storage.cluster_store import ClusterStore
from aioproducer.broker.storage.committer import Committer, FlushPolicy
from aioproducer.broker.storage.data_directory import DataDirectory
from aioproducer.broker.storage.durable_apis import DurableApis
from aioproducer.broker.storage.files import Files
from aioproducer.errors import DataDirectoryException, IllegalStateException

log = logging.getLogger(__name__)


class Storage:
    """Opened once and closed once; ``journal`` is for the state of the cluster that it keeps.

    ``on_failure`` is called with the reason when the directory fails; nothing is acknowledged after that.
    """

    def __init__(self, files: Files, on_failure: Callable[[str], object], *, recover: bool = False) -> None:
        self._directory = DataDirectory(files, recover=recover)
        self.journal = ClusterStore(self._directory)
        self._committer: Committer | None = None
        self._state: ClusterState | None = None
        self._closed = False
        self._on_failure = on_failure
        self._directory.on_failure = self._failed

    @property
    def is_open(self) -> bool:
        return self._committer is not None and not self._closed

    async def open(self, state: ClusterState, transactions: TransactionCoordinator, now_ms: int) -> None:
        """Restores a cluster of which no node runs yet; what that changed is on disk when it returns.

        Raises :class:`DataDirectoryException`.
        """
        if self._closed:
            raise IllegalStateException("a cluster with a data directory is started once: make another one")
        try:
            await self._open(state, transactions, now_ms)
        except OSError as error:
            raise DataDirectoryException(
                f"the data directory {self._directory.files} cannot be used: {error.strerror or error}"
            ) from error
        transactions.resume()

    async def _open(self, state: ClusterState, transactions: TransactionCoordinator, now_ms: int) -> None:
        # In a thread: after a crash every batch is read.
        await asyncio.get_running_loop().run_in_executor(None, self.journal.restore, state, transactions, now_ms)
        self._state, config = state, state.config
        committer = Committer(self._directory, FlushPolicy(config.log_flush_policy), config.log_flush_interval_ms)
        self._committer = committer
        try:
            await committer.commit()
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        """Everything is on disk when it returns, unless it has failed before: the log has said so."""
        if self._committer is None or self._closed:
            return
        self._closed = True
        try:
            await self._committer.close()
            await self._note_clean_shutdown()
        finally:
            self._directory.close()

    async def _note_clean_shutdown(self) -> None:
        if self._state is None or self._directory.failure is not None:
            return
        # Before anything is awaited: what changes from now on is never on disk.
        logs = self.journal.checkpoints(self._state)
        files = self._directory.files
        try:
            await asyncio.get_running_loop().run_in_executor(None, write_clean_shutdown, files, logs)
        except OSError as error:
            log.warning("%s: no %s, so the next start reads every batch: %s", files, CLEAN_SHUTDOWN, error)

    def _failed(self) -> None:
        self._on_failure(f"the data directory {self._directory.files} has failed: {self._directory.failure}")

    async def commit(self) -> None:
        """What has changed so far is on disk when it returns. Raises OSError."""
        if self._committer is None:
            raise IllegalStateException("the cluster has not been started")
        await self._committer.commit()

    def durable(self, apis: RequestHandler) -> DurableApis:
        """The APIs of a node, which answer when what they reveal is on disk."""
        if self._committer is None:
            raise IllegalStateException("the cluster has not been started")
        return DurableApis(apis, self._committer)
