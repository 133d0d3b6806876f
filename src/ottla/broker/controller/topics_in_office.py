"""What the controller does about topics: new ones, growing ones, announced states, deletions."""

import logging

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId, TopicPartition
from ottla.broker.cluster.registration import check_controller
from ottla.broker.controller.office import Office
from ottla.broker.controller.reading import read_states
from ottla.broker.controller.writing import Deposed
from ottla.broker.topics.operations import removal
from ottla.controller.deletion import plan_deletion
from ottla.coordination.store import Create, Delete, NodeExists, NoNode, StoreError
from ottla.metadata import paths
from ottla.metadata.image import BrokerImage, TopicImage
from ottla.metadata.loader import load_topics
from ottla.metadata.notices import decode_log_dir_event, decode_partitions

_log = logging.getLogger(__name__)

# As the leader epoch of a replica whose topic goes: no epoch fences it.
EPOCH_DURING_DELETE = -2


class TopicsInOffice:
    """Follows `/brokers/topics`, `/isr_change_notification` and `/admin/delete_topics`."""

    def __init__(self, office: Office, *, deletes: bool) -> None:
        self._office = office
        # Whether `delete.topic.enable` lets topics go.
        self._deletes = deletes
        # Confirmed by their brokers, by topic.
        self._deleted: dict[str, set[tuple[int, BrokerId]]] = {}
        office.on_deleted = self._on_deleted
        office.on_come.append(lambda: office.jobs.once("deletions", self.on_deletions))

    async def on_topics(self) -> None:
        """Topics may have been created: their states are known, and told to everybody."""
        office = self._office
        names = await office.store.children(paths.TOPICS)
        new = [name for name in names if name not in office.context.topics]
        found = await load_topics(office.store, new)
        if not found:
            return
        context = office.context
        context.topics |= found
        partitions = [name for topic in found for name in context.names_of(topic)]
        office.note_created(partitions)
        # The broker that created it may have known less of who lives.
        await office.settle(partitions, "its topic was created")
        for sender in office.senders.values():
            sender.partitions(partitions)

    async def mark_topics(self) -> None:
        """Give topics of an older version the mark that late writes are checked against."""
        office = self._office
        marks = await office.store.children(paths.TOPIC_IDS)
        for topic in office.context.topics.values():
            if str(topic.id) not in marks:
                try:
                    await office.store.multi([Create(paths.topic_mark(topic.id))])
                except NodeExists:
                    continue

    async def on_announcements(self) -> None:
        """Leaders have written states, or topics have grown (P17)."""
        office, context = self._office, self._office.context
        numbers = await office.store.children(paths.ISR_CHANGES)
        if not numbers:
            return
        told: dict[TopicPartition, None] = {}
        for number in numbers:
            path = f"{paths.ISR_CHANGES}/{number}"
            node = await office.store.get(path)
            if node is not None:
                try:
                    told |= dict.fromkeys(decode_partitions(path, node.data))
                except OttlaError as error:
                    _log.error("%s", error.message)
        known = [name for name in told if context.partition(name) is not None]
        grown = {n.topic: None for n in told if n.topic in context.topics and n not in known}
        states = await read_states(office.store, known, context.topics)
        context.set_partitions(states)
        for name, state in states:
            # Who is in sync works, though it may have been made anew since it failed.
            for broker in state.isr:
                context.offline.pop((name, broker), None)
        await office.reread(list(grown))
        for sender in office.senders.values():
            sender.metadata(known)
        await office.complete_moves(known)
        await self._remove([f"{paths.ISR_CHANGES}/{number}" for number in numbers])

    async def on_log_dir_events(self) -> None:
        """Replicas of some brokers went out of use or came back: ask, by telling them all anew.

        What a broker cannot do is in its answer (see `Reports.failed`).
        """
        office = self._office
        numbers = await office.store.children(paths.LOG_DIR_EVENTS)
        for number in numbers:
            path = f"{paths.LOG_DIR_EVENTS}/{number}"
            node = await office.store.get(path)
            if node is None:
                continue
            try:
                sender = office.senders.get(decode_log_dir_event(path, node.data))
            except OttlaError as error:
                _log.error("%s", error.message)
                continue
            if sender is not None:
                sender.everything()
        await self._remove([f"{paths.LOG_DIR_EVENTS}/{number}" for number in numbers])

    # -- deletion

    async def on_deletions(self) -> None:
        """Topics may have been marked for deletion; go on with all that are."""
        office, context = self._office, self._office.context
        marked = await office.store.children(paths.DELETE_TOPICS)
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
        """Remove the marks, as Kafka does where deletion is switched off; the topics stay."""
        if not marked:
            return
        _log.warning(
            "%s are marked for deletion and delete.topic.enable is false: the marks are removed, "
            "the topics stay; set delete.topic.enable=true to delete them",
            ", ".join(marked),
        )
        await self._remove([paths.topic_deletion(name) for name in marked])
        # Other parts leave a marked topic out: the office begins anew without the marks.
        await self._office.repair()

    def _on_deleted(self, broker: BrokerImage, names: list[TopicPartition]) -> None:
        for name in names:
            if name.topic in self._office.context.deleting:
                confirmed = self._deleted.setdefault(name.topic, set())
                confirmed.add((name.partition, broker.id))
                self._office.jobs.once("deletions", self.on_deletions)

    async def _advance(self, topic: TopicImage) -> None:
        office = self._office
        plan = plan_deletion(
            topic, office.context.brokers, self._deleted.get(topic.name, frozenset())
        )
        for sender in office.senders.values():
            sender.gone(topic)
        for broker, indexes in plan.asked.items():
            if broker in office.senders:
                stops = {TopicPartition(topic.name, i): EPOCH_DURING_DELETE for i in indexes}
                office.senders[broker].stop_replicas(stops, delete=True)
        if plan.awaited:
            _log.info("deletion of %s waits for brokers %s", topic.name, list(plan.awaited))
        if plan.is_done:
            await self._finish(topic)

    async def _finish(self, topic: TopicImage) -> None:
        """No replica is left: take it out of the store. It may have grown, so it is read anew."""
        office, context = self._office, self._office.context
        found = (await load_topics(office.store, [topic.name])).get(topic.name)
        if found is not None and len(found.partitions) > len(topic.partitions):
            context.topics[topic.name] = found
            office.jobs.once("deletions", self.on_deletions)
            return
        await self.mark_topics()
        try:
            await office.store.multi([check_controller(office.epoch), *removal(topic)])
        except StoreError as error:
            if error.path == paths.CONTROLLER_EPOCH:
                raise Deposed from error
            if not isinstance(error, NoNode):
                raise
            _log.warning("deleting topic %s: %s", topic.name, error.message)
        del context.topics[topic.name]
        del context.deleting[topic.name]
        self._deleted.pop(topic.name, None)
        _log.info("topic %s is deleted", topic.name)
        # One of the same name may have been asked for meanwhile.
        office.jobs.once("topics", self.on_topics)

    async def _remove(self, nodes: list[str]) -> None:
        office = self._office
        for path in nodes:
            try:
                await office.store.multi([check_controller(office.epoch), Delete(path)])
            except NoNode:
                continue
            except StoreError as error:
                if error.path == paths.CONTROLLER_EPOCH:
                    raise Deposed from error
                raise
