"""The shell of one partition of a coordinator's topic: loads it, writes to it, closes it.

The steps of a command are: decide, append, apply, and answer when the high watermark has passed all
appended records. So no client, even of a read-only request, sees a state that a crash could undo.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.coordinators.replay import Losses
from ottla.broker.coordinators.replies import (
    APPEND_FAILURES,
    TOO_LARGE,
    CoordinatorReply,
    fail,
    give_when_committed,
    split,
)
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.runtime.purgatory import Purgatory
from ottla.storage.disk.errors import DiskFull

_log = logging.getLogger(__name__)

C = TypeVar("C")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Decided(Protocol[R_co]):
    """A core's decision: records to append and apply, and replies to give after their commit."""

    @property
    def records(self) -> Sequence[R_co]: ...

    @property
    def replies(self) -> Sequence[CoordinatorReply]: ...


class Shard(ABC, Generic[C, R]):
    """The keys of one partition. `C` is the coordinator core, `R` the type of its records.

    `commit_timeout_ms` limits the wait of answers for the commit of their records. `load_bytes` is
    the size of a read when the log is loaded. Invariant: unless `coordinator` is None, its state
    equals the log up to the log end offset.
    """

    # The name of the keys in log messages, for example "groups".
    what: ClassVar[str]
    # Whether `check_size` may reject a record.
    checks_sizes: ClassVar[bool] = False

    def __init__(
        self,
        partition: Partition,
        clock: Clock,
        purgatory: Purgatory,
        *,
        commit_timeout_ms: int,
        load_bytes: int,
    ) -> None:
        self.partition = partition
        self.clock = clock
        self.purgatory = purgatory
        self.load_bytes = load_bytes
        self._commit_timeout_ms = commit_timeout_ms
        # The leader epoch in which it was loaded. In another epoch it is loaded again.
        self.leader_epoch = partition.leader_epoch
        # None while it is loading.
        self.coordinator: C | None = None
        self.closed = False
        # The parts of the log that could not be read when it was loaded.
        self.losses = Losses(partition.topic_partition)
        # Kept so that the task is not collected while it runs.
        self._reloading: asyncio.Task[None] | None = None

    @abstractmethod
    def empty(self) -> C:
        """Create a coordinator without any state."""

    @abstractmethod
    async def replayed(self) -> C:
        """Rebuild the coordinator from the log.

        Records that cannot be read are skipped and reported. Raises OttlaError if the disk fails.
        """

    @abstractmethod
    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """Return the key and value of a record; a tombstone's value is None."""

    @abstractmethod
    def apply(self, coordinator: C, record: R, offset: int, producer: OnBehalf | None) -> None:
        """Apply a record that was appended at `offset` to `coordinator`."""

    def check_size(self, record: R, value: bytes | None, max_bytes: int) -> None:
        """Raise OttlaError if a record larger than `max_bytes` must not be written."""

    def failure(self, code: ErrorCode, _records: Sequence[R]) -> ErrorCode:
        """Return the error code for clients whose records could not be appended."""
        if code in TOO_LARGE:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return APPEND_FAILURES.get(code, code)

    def is_ahead(self, _records: Sequence[R]) -> bool:
        """Whether the coordinator's memory changed before these records are applied."""
        return False

    @abstractmethod
    def begin(self, coordinator: C) -> None:
        """Start serving with `coordinator`."""

    @abstractmethod
    def release(self, coordinator: C | None, code: ErrorCode) -> None:
        """Stop serving with `coordinator`, and answer waiting requests with `code`."""

    def report(self, losses: Losses) -> None:
        """Log and keep the losses found while the partition was replayed."""
        losses.warn(self.what)
        self.losses = losses

    @property
    def name(self) -> str:
        """The partition's name for log messages."""
        return str(self.partition.topic_partition)

    async def load(self) -> None:
        """Rebuild the coordinator from the log. Raises OttlaError if the log cannot be read."""
        self.coordinator = None
        coordinator = await self.replayed()
        if not self.closed:
            self.coordinator = coordinator
            self.begin(coordinator)

    async def load_or_log(self) -> None:
        """Do as `load`, but log errors; the keys then stay unavailable."""
        try:
            await self.load()
        except OttlaError as error:
            _log.error("cannot load the %s of %s: %s", self.what, self.name, error)

    def load_nothing(self) -> None:
        """Start serving at once, because the log is empty."""
        assert self.partition.log_end_offset == self.partition.log_start_offset
        self.coordinator = self.empty()
        self.begin(self.coordinator)

    def loaded(self) -> C:
        """Return the coordinator. Raises OttlaError (COORDINATOR_LOAD_IN_PROGRESS) if loading."""
        if self.coordinator is None:
            raise OttlaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"the {self.what} of {self.name} are loading",
            )
        return self.coordinator

    # Hot: once per command.
    def write(self, decided: Decided[R], producer: OnBehalf | None = None) -> bool:
        """Append and apply the records of a decision.

        If that fails, answer with errors and return False. With `producer` the records belong to
        its transaction.
        """
        coordinator = self.coordinator
        assert coordinator is not None
        records = decided.records
        encoded = [self.encode(record) for record in records]
        offsets: list[int] = []
        max_bytes = self.partition.config.max_message_bytes
        try:
            if self.checks_sizes:
                for record, (_, value) in zip(records, encoded, strict=True):
                    self.check_size(record, value, max_bytes)
            for batch in split(encoded, max_bytes):
                first, last = self.partition.append_internal(batch, producer)
                offsets.extend(range(first, last + 1))
        except OttlaError as error:
            if error.code is not ErrorCode.KAFKA_STORAGE_ERROR:
                # Storage errors are logged elsewhere.
                _log.error("cannot write to %s: %s", self.name, error)
            code = self.failure(error.code, records)
            if isinstance(error, DiskFull):
                # This broker stays the coordinator: clients should retry later, not elsewhere.
                code = ErrorCode.COORDINATOR_NOT_AVAILABLE
            fail(decided.replies, code)
            if offsets or self.is_ahead(records):
                # Appended records and changed memory cannot be undone, so load the log again.
                self.reload(code if isinstance(error, DiskFull) else ErrorCode.NOT_COORDINATOR)
            return False
        for record, offset in zip(records, offsets, strict=True):
            self.apply(coordinator, record, offset, producer)
        return True

    def answer(self, decided: Decided[R]) -> None:
        """Give the replies when all records now in the partition are committed."""
        if decided.replies:
            give_when_committed(
                decided.replies, self.partition, self.purgatory, self._commit_timeout_ms
            )

    def reload(self, code: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Load the coordinator again, because memory and log differ.

        Waiting requests are answered with `code`.
        """
        self._unload(code)
        self._reloading = asyncio.get_running_loop().create_task(self.load_or_log())

    def close(self, code: ErrorCode) -> None:
        """Stop coordinating, and answer waiting requests with `code`."""
        self.closed = True
        self._unload(code)

    def _unload(self, code: ErrorCode) -> None:
        coordinator, self.coordinator = self.coordinator, None
        self.release(coordinator, code)
