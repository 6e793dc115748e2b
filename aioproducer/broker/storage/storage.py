"""Opens, commits and closes the data directory of a cluster."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial

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
from aioproducer.tasks.own_thread import in_own_thread

log = logging.getLogger(__name__)

_THREAD = "aioproducer-storage"


class Storage:
    """The data directory of a cluster; it is opened once and closed once. ``journal`` receives the cluster's changes.

    ``on_failure`` is called with the reason when the directory fails; no change is acknowledged after that.
    """

    def __init__(self, files: Files, on_failure: Callable[[str], object], *, recover: bool = False) -> None:
        self._directory = DataDirectory(files, recover=recover, on_change=self._changed, on_failure=self._failed)
        self.journal = ClusterStore(self._directory)
        self._committer: Committer | None = None
        self._state: ClusterState | None = None
        self._closed = False
        self._on_failure = on_failure

    @property
    def is_open(self) -> bool:
        return self._committer is not None and not self._closed

    async def open(self, state: ClusterState, transactions: TransactionCoordinator, now_ms: int) -> None:
        """Restores a cluster before its first node starts. When this returns, the changes of the recovery are on disk.

        Raises :class:`DataDirectoryException`.
        """
        if self._closed:
            raise IllegalStateException("a cluster with a data directory can be started only once: make another one")
        try:
            await self._open(state, transactions, now_ms)
        except OSError as error:
            where = f" ({error.filename})" if error.filename else ""
            raise DataDirectoryException(
                f"the data directory {self._directory.files} cannot be used: {error.strerror or error}{where}"
            ) from error
        transactions.resume()

    async def _open(self, state: ClusterState, transactions: TransactionCoordinator, now_ms: int) -> None:
        # In a thread, because a start after a crash reads every batch.
        await in_own_thread(_THREAD, partial(self.journal.restore, state, transactions, now_ms))
        self._state, config = state, state.config
        committer = Committer(self._directory, FlushPolicy(config.log_flush_policy), config.log_flush_interval_ms)
        self._committer = committer
        try:
            await committer.commit()
        except BaseException:
            await self.close()
            raise

    def is_urgent(self) -> bool:
        """Whether requests wait for a commit to be begun or ended."""
        return self._committer is not None and self._committer.is_urgent()

    async def close(self) -> None:
        """Commits everything and closes. After an earlier failure, which is logged, nothing more is written."""
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
        # Taken before anything is awaited: later changes are not written any more.
        logs = self.journal.checkpoints(self._state)
        files = self._directory.files
        try:
            await in_own_thread(_THREAD, partial(write_clean_shutdown, files, logs))
        except OSError as error:
            log.warning("%s: no %s, so the next start reads every batch: %s", files, CLEAN_SHUTDOWN, error)

    def _changed(self) -> None:
        if self._committer is not None:
            self._committer.changed()

    def _failed(self) -> None:
        self._on_failure(f"the data directory {self._directory.files} has failed: {self._directory.failure}")

    async def commit(self) -> None:
        """Returns when all changes so far are on disk. Raises OSError."""
        if self._committer is None:
            raise IllegalStateException("the cluster has not been started")
        await self._committer.commit()

    def durable(self, apis: RequestHandler) -> DurableApis:
        """Wraps the APIs of a node: they answer once everything that the answer reveals is on disk."""
        if self._committer is None:
            raise IllegalStateException("the cluster has not been started")
        return DurableApis(apis, self._committer)
