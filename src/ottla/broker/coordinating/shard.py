"""One partition of a coordinator's topic: loaded from its log, kept while it is led, given up."""

import asyncio
import logging
from abc import ABC, abstractmethod
from typing import ClassVar, Generic, TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.partition import Partition

_log = logging.getLogger(__name__)

C = TypeVar("C")


class Shard(ABC, Generic[C]):
    """The keys of one partition, which a `C`, a coordinator without I/O, decides about.

    Invariant: while `coordinator` is not None it holds exactly what the log says up to its end.
    """

    # What it coordinates, as messages name it: "groups".
    what: ClassVar[str]

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        # The term it is loaded for: in another one it is loaded anew.
        self.leader_epoch = partition.leader_epoch
        # None while it is loaded.
        self.coordinator: C | None = None
        self.closed = False
        # Kept so that the task is not collected while it runs.
        self._reloading: asyncio.Task[None] | None = None

    @abstractmethod
    def empty(self) -> C:
        """A coordinator that knows of nothing."""

    @abstractmethod
    async def replayed(self) -> C:
        """The coordinator that the log tells of. Raises OttlaError where that cannot be read."""

    @abstractmethod
    def begin(self, coordinator: C) -> None:
        """`coordinator` is at work from now on."""

    @abstractmethod
    def forsake(self, coordinator: C | None, code: ErrorCode) -> None:
        """`coordinator` is not at work any more: whoever waits for it is told `code`."""

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
