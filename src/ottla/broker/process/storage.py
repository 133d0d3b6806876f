"""Opens a broker's store and log directories, which must belong to the same cluster."""

import logging
import random
import shlex
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.base.chance import random_bytes
from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.base.private_files import exposed_folder
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.registration import (
    agree_on_cluster_id,
    agree_on_secret,
    known_cluster_id,
    name_cluster,
    new_cluster_id,
    new_secret,
    prepare,
)
from ottla.broker.cluster.store_mark import StoreMark
from ottla.broker.configs.cluster_min_isr import initial_min_isr, warn_of_own_min_isr
from ottla.broker.partitions.flush import Worker
from ottla.broker.partitions.upkeep import checkpoint_interval_ms
from ottla.broker.process.store_access import store_access
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.patience import StorePatience
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Chores
from ottla.coordination.connect import connect
from ottla.coordination.interface.store import Store
from ottla.coordination.memory.memory import MemoryStore
from ottla.coordination.sqlite.sqlite import SqliteStore
from ottla.metadata.paths import SENSITIVE
from ottla.network.dialer import Dialer
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import storage_error
from ottla.storage.disk.filesystem import FileSystem


@dataclass(frozen=True, slots=True)
class Seams:
    """The dependencies that tests replace.

    If `store` is None, the broker opens its own store and closes it. If `worker` is None, a thread
    flushes the logs.
    """

    clock: Clock
    filesystem: FileSystem
    rng: random.Random
    dialer: Dialer
    store: Store | None
    worker: Worker | None


_log = logging.getLogger(__name__)

_STORE_FILE = "ottla-store.sqlite"


@dataclass(frozen=True, slots=True)
class DirectoryStatus:
    """One log directory that serves. Sizes in bytes, 0 if its disk cannot be measured.

    Records are refused once less than `reserve_bytes` are free.
    """

    path: str
    logs: int
    total_bytes: int
    free_bytes: int
    reserve_bytes: int


@dataclass(frozen=True, slots=True)
class StorageStatus:
    """Describes the log directories of a broker."""

    directories_online: int
    # Directories that failed at the start or later.
    directories_failed: int
    logs: int
    # Whether a disk is so full that records are refused, or will soon be.
    is_short_of_space: bool
    directories: tuple[DirectoryStatus, ...]


class Storage(BrokerPart):
    """The store and the log directories of one broker, and the settings of its cluster.

    All attributes except `filesystem` are set by `start`. `stop` closes the store only if `start`
    opened it.
    """

    store: Store
    cluster_id: str
    secret: bytes
    log_directories: LogDirectories

    def __init__(self, settings: BrokerSettings, seams: Seams, runtime: Runtime) -> None:
        self._settings = settings
        self._seams = seams
        self._runtime = runtime
        self.filesystem = seams.filesystem
        self._owned: Store | None = None
        # None if the store was passed in; then its owner checks it.
        self._mark: StoreMark | None = None
        self._chores = Chores()
        self._is_open = False

    async def start(self) -> None:
        """Open the store and lock the directories.

        Raises OttlaError if the directories belong to another broker or cluster, if the store is
        older than a state that this broker has seen, or if the store does not answer.
        """
        settings, clock, filesystem = self._settings, self._seams.clock, self.filesystem
        ask = StorePatience(clock, settings.integer("broker.session.timeout.ms")).ask
        paths = settings.log_dirs
        store = await self._open_store()
        found = LogDirectories.find_cluster_id(filesystem, paths)
        # The store of another cluster is not compared: it is refused because of its id.
        if self._mark and await known_cluster_id(store) in (None, found):
            await self._mark.check()
        proposed = found or new_cluster_id(random_bytes)
        beginning = [name_cluster(proposed), new_secret(random_bytes), initial_min_isr(settings)]
        await ask(lambda: prepare(store, beginning))
        self.cluster_id = await ask(lambda: agree_on_cluster_id(store, proposed))
        self.secret = await ask(lambda: agree_on_secret(store, random_bytes))
        await ask(lambda: warn_of_own_min_isr(store, settings))
        self.log_directories = LogDirectories(
            filesystem,
            paths,
            cluster_id=self.cluster_id,
            node_id=BrokerId(settings.broker_id),
            producer_expiration_ms=settings.integer("producer.id.expiration.ms"),
            flushes_first=settings.text("log.flush.policy") == "group",
        )
        self._is_open = True
        if not filesystem.in_memory:
            _warn_of_open_folders(paths)

    def begin(self) -> None:
        """Write the mark of the store now, and again with each checkpoint."""
        if self._mark is not None:
            self._runtime.spawn(self._mark.keep())
            self._chores.every(checkpoint_interval_ms(self._settings), self._mark.keep)

    async def stop(self) -> None:
        try:
            await self._chores.stop()
        finally:
            if self._is_open:
                # Still open only if the start failed before there were partitions.
                self.log_directories.close({}, clean=False)
            if self._owned is not None:
                await self._owned.close()

    def status(self) -> StorageStatus:
        directories = self.log_directories
        online = directories.online
        failed = len(directories.directories) - len(online) + len(directories.unusable)
        return StorageStatus(
            directories_online=len(online),
            directories_failed=failed,
            logs=sum(len(directory.logs) for directory in online),
            is_short_of_space=directories.is_short_of_space(),
            directories=tuple(
                DirectoryStatus(each.path, len(each.logs), *each.reserve.space()) for each in online
            ),
        )

    async def _open_store(self) -> Store:
        if self._seams.store is not None:
            self.store = self._seams.store
            return self.store
        self.store = self._owned = await configured_store(self._settings, self.filesystem)
        if not self.filesystem.in_memory:
            folder, in_thread = self._settings.log_dirs[0], self._runtime.in_thread
            self._mark = StoreMark(self.filesystem, folder, self.store, in_thread)
        return self.store


async def configured_store(settings: BrokerSettings, filesystem: FileSystem) -> Store:
    """Return the configured store; by default a file in the first log directory, or in memory."""
    address = settings.text("coordination.connect")
    if address:
        return await connect(address, access=store_access(settings))
    if filesystem.in_memory:
        return MemoryStore()
    folder, *others = settings.log_dirs
    if not filesystem.exists(f"{folder}/{_STORE_FILE}"):
        for other in others:
            if filesystem.exists(f"{other}/{_STORE_FILE}"):
                raise OttlaError(
                    ErrorCode.INVALID_CONFIG,
                    f"the state of the cluster is in {other}/{_STORE_FILE}, but the first of "
                    f"log.dirs is {folder}: name {other} first, or topics would be missing",
                )
    try:
        filesystem.mkdir(folder)
    except OSError as error:
        raise storage_error(error, folder, "make the log directory") from error
    return await SqliteStore.open(f"{folder}/{_STORE_FILE}", SENSITIVE)


def _warn_of_open_folders(paths: Iterable[str]) -> None:
    for path in paths:
        mode = exposed_folder(path)
        if mode is not None:
            _log.warning(
                "the log directory %s is open to every user of this machine (mode %04o), and files"
                " that Ottla did not make may be, too: run `chmod -R go= %s`",
                path,
                mode,
                shlex.quote(path),
            )
