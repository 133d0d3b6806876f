"""One partition of a coordinator's topic: loaded from its log, kept while it is led, given up.

decide -> append -> apply -> answer once the high watermark has passed everything appended. So
nobody is told of anything that a crash could take back, readers included.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar, Generic, Protocol, TypeVar

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.coordinating.answering import (
    APPEND_FAILURES,
    TOO_LARGE,
    Reply,
    fail,
    give_when_committed,
    split,
)
from ottla.broker.coordinating.losses import Losses
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.runtime.purgatory import Purgatory

_log = logging.getLogger(__name__)

C = TypeVar("C")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)


class Decided(Protocol[R_co]):
    """What a core has decided: records to append and apply; answers once they are committed."""

    @property
    def records(self) -> Sequence[R_co]: ...

    @property
    def replies(self) -> Sequence[Reply]: ...


class Shard(ABC, Generic[C, R]):
    """The keys of one partition, which a `C`, a coordinator without I/O, decides about in `R`s.

    `commit_timeout_ms` is how long answers wait for what they tell to be committed, `load_bytes`
    how much of the log is read at once.
    Invariant: while `coordinator` is not None it holds exactly what the log says up to its end.
    """

    # What it coordinates, as messages name it: "groups".
    what: ClassVar[str]
    # Whether `check_size` has anything to refuse.
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
        # The term it is loaded for: in another one it is loaded anew.
        self.leader_epoch = partition.leader_epoch
        # None while it is loaded.
        self.coordinator: C | None = None
        self.closed = False
        # What of the partition could not be read when it was loaded.
        self.losses = Losses(partition.topic_partition)
        # Kept so that the task is not collected while it runs.
        self._reloading: asyncio.Task[None] | None = None

    @abstractmethod
    def empty(self) -> C:
        """A coordinator that knows of nothing."""

    @abstractmethod
    async def replayed(self) -> C:
        """The coordinator that the log tells of, without what of it cannot be read.

        What that is, it reports. Raises OttlaError where the disk fails.
        """

    @abstractmethod
    def encode(self, record: R) -> tuple[bytes, bytes | None]:
        """The key and the value; a tombstone's value is None."""

    @abstractmethod
    def apply(self, coordinator: C, record: R, offset: int, producer: OnBehalf | None) -> None:
        """Make a record that was appended at `offset` part of what `coordinator` holds."""

    def check_size(self, record: R, value: bytes | None, max_bytes: int) -> None:
        """Raise OttlaError where a record must not be written, being larger than `max_bytes`."""

    def failure(self, code: ErrorCode, _records: Sequence[R]) -> ErrorCode:
        """What clients are told whose records could not be appended."""
        if code in TOO_LARGE:
            return ErrorCode.UNKNOWN_SERVER_ERROR
        return APPEND_FAILURES.get(code, code)

    def is_ahead(self, _records: Sequence[R]) -> bool:
        """Whether memory has changed already by what these records, not yet applied, tell."""
        return False

    @abstractmethod
    def begin(self, coordinator: C) -> None:
        """`coordinator` is at work from now on."""

    @abstractmethod
    def forsake(self, coordinator: C | None, code: ErrorCode) -> None:
        """`coordinator` is not at work any more: whoever waits for it is told `code`."""

    def report(self, losses: Losses) -> None:
        """Tell and keep what could not be read of the partition while it was replayed."""
        losses.warn(self.what)
        self.losses = losses

    @property
    def name(self) -> str:
        """The partition, as messages name it."""
        return str(self.partition.topic_partition)

    async def load(self) -> None:
        """Rebuild the coordinator from the log. Raises OttlaError where that cannot be read."""
        self.coordinator = None
        coordinator = await self.replayed()
        if not self.closed:
            self.coordinator = coordinator
            self.begin(coordinator)

    async def load_or_log(self) -> None:
        """`load`; a log that cannot be read leaves its keys unavailable, and our log says so."""
        try:
            await self.load()
        except OttlaError as error:
            _log.error("cannot load the %s of %s: %s", self.what, self.name, error)

    def load_nothing(self) -> None:
        """Begin with an empty log, at once."""
        assert self.partition.log_end_offset == self.partition.log_start_offset
        self.coordinator = self.empty()
        self.begin(self.coordinator)

    def loaded(self) -> C:
        """The coordinator. Raises OttlaError (COORDINATOR_LOAD_IN_PROGRESS) while it is loaded."""
        if self.coordinator is None:
            raise OttlaError(
                ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
                f"the {self.what} of {self.name} are loading",
            )
        return self.coordinator

    # Hot: once per command.
    def write(self, decided: Decided[R], producer: OnBehalf | None = None) -> bool:
        """Append and apply the records; False where that failed and everyone was told so.

        With `producer` they are a part of its transaction.
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
            _log.error("cannot write to %s: %s", self.name, error)
            fail(decided.replies, self.failure(error.code, records))
            if offsets or self.is_ahead(records):
                # Half of the records cannot be taken back, nor what memory is ahead.
                self.reload()
            return False
        for record, offset in zip(records, offsets, strict=True):
            self.apply(coordinator, record, offset, producer)
        return True

    def answer(self, decided: Decided[R]) -> None:
        """Give the answers once all that the partition holds now is committed."""
        if decided.replies:
            give_when_committed(
                decided.replies, self.partition, self.purgatory, self._commit_timeout_ms
            )

    def reload(self) -> None:
        """Rebuild what memory and log disagree about."""
        self._unload(ErrorCode.NOT_COORDINATOR)
        self._reloading = asyncio.get_running_loop().create_task(self.load_or_log())

    def close(self, code: ErrorCode) -> None:
        """Give the keys up: whoever waits is told `code`."""
        self.closed = True
        self._unload(code)

    def _unload(self, code: ErrorCode) -> None:
        coordinator, self.coordinator = self.coordinator, None
        self.forsake(coordinator, code)
