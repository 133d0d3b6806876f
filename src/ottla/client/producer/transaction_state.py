"""The state of a transactional producer: the open transaction, and whether it can be committed.

If the cluster has `transaction.version` 2 (KIP-890), brokers add partitions by themselves and each
transaction has its own epoch; otherwise partitions are added before records are sent to them.
"""

import asyncio
from collections.abc import Callable, Mapping
from enum import Enum, auto

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.common.errors import (
    BrokerRefused,
    ClientError,
    ProducerFenced,
    TransactionFailed,
)
from ottla.client.connection.cluster import Cluster
from ottla.client.connection.coordinator import GroupMetadata, OffsetAndMetadata
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.queues import PartitionQueue
from ottla.client.producer.transaction_requests import FENCED, Identity, TransactionRequests

# The last version in which clients must add partitions.
_PRODUCE_V1 = 11


class Phase(Enum):
    """The phases of a transactional producer."""

    NEW = auto()
    READY = auto()
    OPEN = auto()
    COMMITTING = auto()
    ABORTING = auto()


class Transactions:
    """One producer's transactions, one after the other. Used only on its loop."""

    def __init__(self, cluster: Cluster, options: ProducerOptions) -> None:
        self.phase = Phase.NEW
        self._requests = TransactionRequests(cluster, options)
        self.transactional_id = self._requests.transactional_id
        self._me = Identity()
        # Why the open transaction can only be aborted, or why the producer is unusable.
        self._failure: ClientError | None = None
        self._fatal: ClientError | None = None
        # Whether a broker may know of the open transaction.
        self._has_begun = False
        # Without version 2: the added partitions, and those still to be added.
        self._added: set[TopicPartition] = set()
        self._to_add: dict[TopicPartition, None] = {}
        self._adding: asyncio.Task[None] | None = None

    # -- called by the sender

    @property
    def is_failed(self) -> bool:
        """Whether records that are not sent yet would be discarded by an abort."""
        failed = self._failure is not None or self._fatal is not None
        return failed or self.phase is Phase.ABORTING

    @property
    def produce_version_max(self) -> int | None:
        """Return the highest usable version of Produce."""
        return None if self._requests.is_v2 else _PRODUCE_V1

    def admits(self, queue: PartitionQueue, when_added: Callable[[], None]) -> bool:
        """Whether a partition's batches may be sent; if not, add it, then call `when_added`."""
        if self._requests.is_v2:
            return True
        partition = TopicPartition(queue.topic, queue.index)
        if partition in self._added:
            return True
        if not self.is_failed:
            self._to_add[partition] = None
            if self._adding is None:
                self._adding = asyncio.ensure_future(self._add(when_added))
        return False

    def enter(self, queue: PartitionQueue) -> None:
        """Allow a partition to number its next batch for the open transaction."""
        self._has_begun = True
        if (queue.producer_id, queue.epoch) != self._me:
            queue.is_known = queue.is_known and queue.producer_id == self._me[0]
            queue.producer_id, queue.epoch = self._me
            queue.next_sequence = 0
            queue.window.clear()

    def fail(self, error: ClientError) -> None:
        """Note that the open transaction failed: records were given up, or another step failed."""
        if self._fatal is None and error.code in FENCED:
            fenced = isinstance(error, ProducerFenced)
            self._fatal = (
                error if fenced else ProducerFenced(error.code, self.transactional_id, "write")
            )
        if self._failure is None:
            self._failure = error

    # -- the life of a transaction

    async def initialize(self) -> None:
        """Take over the transactional id; a previous producer's open transaction is aborted."""
        self._check_not_fatal()
        if self.phase is not Phase.NEW:
            raise _wrong("the producer is initialized already", "call begin_transaction")
        self._me = await self._requests.take_epoch(self._me, "take over the transactional id")
        self.phase = Phase.READY

    def begin(self) -> None:
        """Open a transaction."""
        self._check_not_fatal()
        assert self.phase is not Phase.NEW
        if self.phase is not Phase.READY:
            raise _wrong("a transaction is open", "commit or abort it first")
        self.phase = Phase.OPEN

    def check_open(self) -> None:
        """Raise the error that prevents a record from joining the transaction, if there is one."""
        self._check_not_fatal()
        if self.phase is not Phase.OPEN:
            raise _wrong("no transaction is open", "call begin_transaction first")
        if self._failure is not None:
            why = self._failure
            raise TransactionFailed(
                why.code,
                "the transaction cannot be committed; abort it, then do it again"
                f" (what went wrong: {why.message})",
            ) from why

    def start_commit(self) -> None:
        """Begin to commit: from now on the transaction is committed, or its outcome is unknown."""
        self._check_not_fatal()
        if self.phase is not Phase.COMMITTING:
            self.check_open()
            self.phase = Phase.COMMITTING

    def start_abort(self) -> None:
        """Begin to abort: from now on the transaction can only be aborted."""
        self._check_not_fatal()
        if self.phase is Phase.COMMITTING:
            raise _wrong(
                "the transaction may be committed already",
                "call commit_transaction again, or make a new producer and see what is there",
            )
        if self.phase not in (Phase.OPEN, Phase.ABORTING):
            raise _wrong("no transaction is open", "there is nothing to abort")
        self.phase = Phase.ABORTING

    async def end(self) -> None:
        """Finish the commit or abort. May be called again if no broker answered."""
        committed = self.phase is Phase.COMMITTING
        await self._stop_adding()
        if self._has_begun:
            try:
                await self._end(committed=committed)
            except TransactionFailed as error:
                self.fail(error)
                self.phase = Phase.OPEN
                raise
            except (ProducerFenced, BrokerRefused) as error:
                self._fatal = error
                raise
        self._has_begun = False
        self._added.clear()
        self._failure = None
        self.phase = Phase.READY

    async def _end(self, *, committed: bool) -> None:
        had_failed = self._failure is not None
        try:
            self._me = await self._requests.end(self._me, committed=committed)
        except BrokerRefused as error:
            # No partition was ever added, so there is no transaction to abort.
            if not had_failed or committed or error.code is not ErrorCode.INVALID_TXN_STATE:
                raise
        if had_failed and not self._requests.is_v2:
            # Sequences may be missing at a broker: new ones begin with a new epoch (KIP-360).
            self._me = await self._requests.take_epoch(self._me, "go on after an abort")

    async def add_offsets(
        self, offsets: Mapping[TopicPartition, OffsetAndMetadata], group: GroupMetadata
    ) -> None:
        """Commit offsets of a group with the open transaction."""
        self.check_open()
        if offsets:
            self._has_begun = True
            try:
                await self._requests.add_offsets(self._me, offsets, group)
            except ClientError as error:
                self.fail(error)
                raise

    async def close(self) -> None:
        """Send no more requests."""
        await self._stop_adding()

    async def _add(self, when_added: Callable[[], None]) -> None:
        """Add the pending partitions to the open transaction, until all are added."""
        try:
            while self._to_add:
                adding = list(self._to_add)
                self._has_begun = True
                await self._requests.add_partitions(self._me, adding)
                self._added.update(adding)
                for partition in adding:
                    del self._to_add[partition]
        except ClientError as error:
            self.fail(error)
        finally:
            self._to_add.clear()
            self._adding = None
        when_added()

    async def _stop_adding(self) -> None:
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)

    def _check_not_fatal(self) -> None:
        if self._fatal is not None:
            raise self._fatal


def _wrong(what: str, remedy: str) -> ClientError:
    return ClientError(ErrorCode.INVALID_TXN_STATE, f"{what}; {remedy}")
