"""Handles new topics, added partitions, announced partition states and topic deletions."""

import logging
from collections.abc import Callable
from dataclasses import replace

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.registration import check_controller
from ottla.broker.controller.active import ActiveController
from ottla.broker.controller.store_access import Deposed, read_states
from ottla.broker.topics.operations import removal
from ottla.controller.deletion import plan_deletion
from ottla.coordination.interface.store import (
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    StoreError,
)
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, TopicImage
from ottla.metadata.loader import load_topics
from ottla.metadata.notices import decode_log_dir_event, decode_partitions
from ottla.metadata.undo import (
    NODE_BYTES_MAX,
    DeletedTopic,
    decode_author,
    encode_deleted_topic,
)

_log = logging.getLogger(__name__)

# The leader epoch in StopReplica for a deleted topic: no epoch fences it.
EPOCH_DURING_DELETE = -2


class TopicChanges:
    """Handles changes of topics, ISR and log directory notifications, and deletion marks."""

    def __init__(
        self, active: ActiveController, clock: Clock, keep_ms: Callable[[], int], *, deletes: bool
    ) -> None:
        """Create the object. `keep_ms` returns how long deleted topics stay in the trash."""
        self._active = active
        self._clock = clock
        self._keep_ms = keep_ms
        # `delete.topic.enable`.
        self._deletes = deletes
        # For each topic, the replicas whose deletion was confirmed by their brokers, with the bytes
        # of each in the trash, or -1.
        self._deleted: dict[str, dict[tuple[int, BrokerId], int]] = {}
        active.reports.on_deleted.append(self._on_deleted)
        active.on_come.append(lambda: active.jobs.once("deletions", self.on_deletions))

    async def on_topics(self) -> None:
        """Read new topics from the store, and send their states to all brokers."""
        active = self._active
        names = await active.store.children(paths.TOPICS)
        new = [name for name in names if name not in active.context.topics]
        found = await load_topics(active.store, new)
        if not found:
            return
        context = active.context
        context.topics |= found
        partitions = [name for topic in found for name in context.names_of(topic)]
        active.changes.note_created(partitions)
        # The broker that created the topic may have had an older list of live brokers.
        await active.changes.settle(partitions, "its topic was created")
        active.senders.partitions(partitions)

    async def mark_topics(self) -> None:
        """Create the node that fences late ISR writes, for topics of an older version."""
        active = self._active
        marks = await active.store.children(paths.TOPIC_IDS)
        for topic in active.context.topics.values():
            if str(topic.id) not in marks:
                try:
                    await active.store.multi([Create(paths.topic_mark(topic.id))])
                except NodeExists:
                    continue

    async def on_announcements(self) -> None:
        """Handle announced partitions: leaders changed their states, or topics have grown (P17)."""
        active, context = self._active, self._active.context
        numbers = await active.store.children(paths.ISR_CHANGES)
        if not numbers:
            return
        announced: dict[TopicPartition, None] = {}
        for number in numbers:
            path = f"{paths.ISR_CHANGES}/{number}"
            node = await active.store.get(path)
            if node is not None:
                try:
                    announced |= dict.fromkeys(decode_partitions(path, node.data))
                except OttlaError as error:
                    _log.error("%s", error.message)
        known = [name for name in announced if context.partition(name) is not None]
        grown = {n.topic: None for n in announced if n.topic in context.topics and n not in known}
        states = await read_states(active.store, known, context.topics)
        context.set_partitions(states)
        for name, state in states:
            # A replica in the ISR works, even if it had failed: it was created again.
            for broker in state.isr:
                context.offline.pop((name, broker), None)
        await active.changes.reread(list(grown))
        active.senders.metadata(known)
        await active.changes.complete_moves(known)
        await self._remove([f"{paths.ISR_CHANGES}/{number}" for number in numbers])

    async def on_log_dir_events(self) -> None:
        """Send the whole state again to brokers whose replicas went offline or came back.

        Their answers name the replicas that are offline (see `Reports.failed`).
        """
        active = self._active
        numbers = await active.store.children(paths.LOG_DIR_EVENTS)
        for number in numbers:
            path = f"{paths.LOG_DIR_EVENTS}/{number}"
            node = await active.store.get(path)
            if node is None:
                continue
            try:
                sender = active.senders.get(decode_log_dir_event(path, node.data))
            except OttlaError as error:
                _log.error("%s", error.message)
                continue
            if sender is not None:
                sender.everything()
        await self._remove([f"{paths.LOG_DIR_EVENTS}/{number}" for number in numbers])

    # -- deletion

    async def on_deletions(self) -> None:
        """Start the deletion of marked topics, and continue earlier deletions."""
        active, context = self._active, self._active.context
        marked = await active.store.children(paths.DELETE_TOPICS)
        if not self._deletes:
            await self._refuse(marked)
            return
        strange = [name for name in marked if name not in context.topics]
        if strange:
            await self.on_topics()
        for name in marked:
            topic = context.topics.get(name)
            if topic is None:
                await self._remove([paths.topic_deletion(name)])
                continue
            if name not in context.deleting:
                _log.info("deleting topic %s, id %s", name, topic.id)
                context.deleting[name] = None
            await self._advance(topic)

    async def _refuse(self, marked: list[str]) -> None:
        """Remove the marks and keep the topics, as Kafka does if deletion is disabled."""
        if not marked:
            return
        _log.warning(
            "%s are marked for deletion and delete.topic.enable is false: the marks are removed, "
            "the topics stay; set delete.topic.enable=true to delete them",
            ", ".join(marked),
        )
        await self._remove([paths.topic_deletion(name) for name in marked])
        # Other parts ignore marked topics, so the whole state is read again without the marks.
        await self._active.repair()

    def _on_deleted(self, broker: BrokerImage, names: dict[TopicPartition, int]) -> None:
        for name, kept_bytes in names.items():
            if name.topic in self._active.context.deleting:
                confirmed = self._deleted.setdefault(name.topic, {})
                confirmed[name.partition, broker.id] = kept_bytes
                self._active.jobs.once("deletions", self.on_deletions)

    async def _advance(self, topic: TopicImage) -> None:
        active = self._active
        plan = plan_deletion(topic, active.context.brokers, self._deleted.get(topic.name, {}))
        for sender in active.senders:
            sender.gone(topic)
        for broker, indexes in plan.asked.items():
            receiver = active.senders.get(broker)
            if receiver is not None:
                stops = {TopicPartition(topic.name, i): EPOCH_DURING_DELETE for i in indexes}
                receiver.stop_replicas(stops, delete=True)
        if plan.awaited:
            _log.info("deletion of %s waits for brokers %s", topic.name, list(plan.awaited))
        if plan.is_done:
            await self._finish(topic)

    async def _finish(self, topic: TopicImage) -> None:
        """Remove a topic from the store after its replicas are deleted, unless it has grown."""
        active, context = self._active, self._active.context
        found = (await load_topics(active.store, [topic.name])).get(topic.name)
        if found is not None and len(found.partitions) > len(topic.partitions):
            context.topics[topic.name] = found
            active.jobs.once("deletions", self.on_deletions)
            return
        await self.mark_topics()
        kept = await self._kept(topic if found is None else found)
        try:
            await active.store.multi([check_controller(active.epoch), *removal(topic), *kept])
        except StoreError as error:
            if error.path == paths.CONTROLLER_EPOCH:
                raise Deposed from error
            if not isinstance(error, NoNode):
                raise
            _log.warning("deleting topic %s: %s", topic.name, error.message)
        del context.topics[topic.name]
        del context.deleting[topic.name]
        self._deleted.pop(topic.name, None)
        _log.info("topic %s is deleted%s", topic.name, ", and can be restored" if kept else "")
        # A topic of the same name may have been created meanwhile.
        active.jobs.once("topics", self.on_topics)

    async def _kept(self, topic: TopicImage) -> list[Operation]:
        """Return the operation that keeps a topic for an undo, if its brokers have all its logs."""
        keep_ms, confirmed = self._keep_ms(), self._deleted.get(topic.name, {})
        sizes = [
            [confirmed.get((index, broker), -1) for broker in state.replicas]
            for index, state in enumerate(topic.partitions)
        ]
        if not keep_ms or any(-1 in replicas for replicas in sizes):
            return []
        path = paths.topic_deletion(topic.name)
        mark = await self._active.store.get(path)
        author = decode_author(path, b"" if mark is None else mark.data)
        author = replace(author, at_ms=self._clock.now_ms())
        until_ms = author.at_ms + keep_ms
        size = sum(max(replicas, default=0) for replicas in sizes)
        data = encode_deleted_topic(DeletedTopic(topic, author, until_ms, size))
        if len(data) > NODE_BYTES_MAX:
            _log.warning("topic %s has too many partitions to be kept for an undo", topic.name)
            return []
        return [Create(paths.deleted_topic(topic.id), data)]

    async def _remove(self, nodes: list[str]) -> None:
        active = self._active
        for path in nodes:
            try:
                await active.store.multi([check_controller(active.epoch), Delete(path)])
            except NoNode:
                continue
            except StoreError as error:
                if error.path == paths.CONTROLLER_EPOCH:
                    raise Deposed from error
                raise
