"""The trash: deleted topics whose records an undo can bring back, until their time is over.

A topic is in the trash while its node below `/ottla/trash` exists. The node is removed after its
time, or because a disk has too little room, and always before any record, so that no undo finds
half of a topic. Each broker removes the logs of topics that are neither in the trash nor in use.
"""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from ottla.base.errors import OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.partitions.removals import Removals
from ottla.broker.runtime.part import BrokerPart
from ottla.broker.runtime.patience import StorePatience
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.tasks import Chores
from ottla.broker.runtime.view import ClusterView
from ottla.coordination.interface.store import (
    BadVersion,
    Delete,
    NoNode,
    Set,
    Store,
    StoreError,
    Watch,
)
from ottla.metadata import paths
from ottla.metadata.undo import DeletedTopic, decode_deleted_topic, encode_deleted_topic
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.directory.log_directory import LogDirectory
from ottla.storage.disk.errors import storage_error

_log = logging.getLogger(__name__)

_CHECK_MS = 1000
# The oldest topics beyond this number are removed.
_TOPICS_MAX = 1000


@dataclass(frozen=True, slots=True)
class TrashStatus:
    """Counts the deleted topics of the cluster that can be restored, and their bytes here."""

    topics: int
    bytes: int


class TrashKeeper(BrokerPart):
    """Follows the trash on one broker, and gives its space back.

    `forget` drops the committed offsets of a topic that is gone for good.
    """

    def __init__(
        self,
        settings: BrokerSettings,
        runtime: Runtime,
        view: ClusterView,
        store: Store,
        directories: LogDirectories,
        removals: Removals,
        forget: Callable[[UUID], None],
    ) -> None:
        self._settings = settings
        self._clock = runtime.clock
        self._patience = StorePatience(runtime.clock, settings.integer("broker.session.timeout.ms"))
        self._view = view
        self._store = store
        self._directories = directories
        self._removals = removals
        self._forget = forget
        self._chores = Chores()
        self._watches: list[Watch] = []
        # The topics in the trash of the cluster, by id.
        self._topics: dict[UUID, DeletedTopic] = {}
        # Deleted topics whose nodes were not seen in the trash yet.
        self._leaving: dict[UUID, None] = {}
        self._has_news = True

    async def start(self) -> None:
        """Read the trash, before this broker can get orders about topics in it."""
        await self._patience.ask(self._read)
        await self._patience.ask(self._give_up_lost)

    def begin(self) -> None:
        """Start following the trash."""
        for path in (paths.TRASH, paths.DELETE_TOPICS):
            self._watches.append(self._store.watch_children(path, self._on_news))
        self._chores.every(_CHECK_MS, self.check)

    async def stop(self) -> None:
        for watch in self._watches:
            watch.cancel()
        await self._chores.stop()

    def status(self) -> TrashStatus:
        logs = (log for one in self._directories.online for log in one.trash.logs.values())
        return TrashStatus(len(self._topics), sum(log.size_bytes for log in logs))

    async def all(self) -> list[DeletedTopic]:
        """Return the deleted topics of the cluster that can be restored. Raises StoreError."""
        nodes = await self._store.subtree(paths.TRASH)
        return [
            decode_deleted_topic(path, node.data)
            for path, node in nodes.items()
            if path != paths.TRASH
        ]

    def on_deleted(self, topic_ids: Iterable[UUID]) -> None:
        """Follow topics that have just been deleted, until they are in the trash or gone."""
        self._leaving |= dict.fromkeys(topic_ids)
        self._has_news = True

    def _on_news(self) -> None:
        self._has_news = True

    async def check(self) -> None:
        """Read news, and remove topics whose time is over or whose space is needed."""
        try:
            if self._has_news:
                self._has_news = False
                await self._read()
            now_ms = self._clock.now_ms()
            oldest = sorted(self._topics, key=lambda one: self._topics[one].author.at_ms)
            over = [one for one in oldest if self._topics[one].until_ms <= now_ms]
            over += oldest[: max(0, len(oldest) - _TOPICS_MAX)]
            for directory in self._directories.online:
                over += self._in_the_way(directory, oldest)
            for topic_id in dict.fromkeys(over):
                await self._take_out(topic_id)
        except StoreError as error:
            self._has_news = True
            _log.warning("the trash of deleted topics is not read: %s", error.message)

    def _in_the_way(self, directory: LogDirectory, oldest: Iterable[UUID]) -> list[UUID]:
        """Return the topics to remove so that a directory's disk has enough free space."""
        sizes: dict[UUID, int] = {}
        for (topic_id, _), kept in directory.trash.logs.items():
            sizes[topic_id] = sizes.get(topic_id, 0) + kept.size_bytes
        if not any(sizes.values()):
            return []
        filesystem, path = directory.filesystem, directory.path
        percent = self._settings.integer("delete.topic.trash.min.free.percent")
        try:
            missing = filesystem.total_bytes(path) * percent // 100 - filesystem.free_bytes(path)
        except OSError as error:
            raise storage_error(error, path, "measure the free space") from error
        is_short = directory.reserve.is_short()
        found: list[UUID] = []
        for topic_id in oldest:
            if sizes.get(topic_id) and (is_short or missing > 0):
                found.append(topic_id)
                missing -= sizes[topic_id]
        if found:
            _log.info("%s needs room: %d deleted topic(s) are removed for good", path, len(found))
        return found

    async def _take_out(self, topic_id: UUID) -> None:
        """Remove a topic from the trash of the cluster, then its logs here. Raises StoreError."""
        try:
            await self._store.multi([Delete(paths.deleted_topic(topic_id))])
        except NoNode:
            # It was restored, or another broker was faster.
            self._has_news = True
            return
        self._remove(topic_id)

    async def _read(self) -> None:
        """Read the topics in the trash, and remove what belongs to no topic. Raises StoreError."""
        names = await self._store.children(paths.TRASH)
        present = {UUID(name) for name in names}
        for topic_id in present - self._topics.keys():
            path = paths.deleted_topic(topic_id)
            node = await self._store.get(path)
            if node is not None:
                try:
                    self._topics[topic_id] = decode_deleted_topic(path, node.data)
                except OttlaError as error:
                    _log.error("%s", error.message)
        here = {key[0] for one in self._directories.online for key in one.trash.logs}
        for topic_id in {*self._topics, *self._leaving, *here} - present:
            await self._settle(topic_id)
        for topic_id in present:
            self._leaving.pop(topic_id, None)

    async def _settle(self, topic_id: UUID) -> None:
        """Handle a topic without a node in the trash: in use, being deleted, or gone for good."""
        is_alive = await self._store.get(paths.topic_mark(topic_id)) is not None
        # It may have been deleted again meanwhile. Then the next look finds its node.
        if not is_alive and await self._store.get(paths.deleted_topic(topic_id)) is None:
            self._remove(topic_id)
            return
        self._topics.pop(topic_id, None)
        if topic_id in self._view.image.topics_by_id:
            self._leaving.pop(topic_id, None)

    def _remove(self, topic_id: UUID) -> None:
        """Remove a topic's logs and committed offsets on this broker."""
        self._topics.pop(topic_id, None)
        self._leaving.pop(topic_id, None)
        for deletion in self._directories.purge(topic_id):
            self._removals.remove_later(deletion)
        self._forget(topic_id)

    async def _give_up_lost(self) -> None:
        """Leave the ISR of deleted topics whose logs are not here any more. Raises StoreError.

        The disk was replaced, perhaps: an empty log must not be restored as a complete one.
        """
        own = self._view.broker_id
        for topic_id, deleted in list(self._topics.items()):
            lost = {
                index: None
                for index, state in enumerate(deleted.topic.partitions)
                if own in (*state.isr, *state.elr, *state.last_known_elr)
                and self._directories.kept(topic_id, index) is None
            }
            if not lost:
                continue
            path = paths.deleted_topic(topic_id)
            node = await self._store.get(path)
            if node is None:
                continue
            self._topics[topic_id] = decode_deleted_topic(path, node.data).without(own, lost)
            _log.warning("this broker has lost logs of the deleted topic %s", deleted.topic.name)
            try:
                data = encode_deleted_topic(self._topics[topic_id])
                await self._store.multi([Set(path, data, node.version)])
            except (NoNode, BadVersion):
                await self._give_up_lost()
                return
