"""Creates, grows and deletes topics: writes them to the store, and waits for the image.

Any broker may write a topic. It is written with all its partitions in one `multi`, so a crash
cannot leave half a topic. The controller reads it and sends it to all brokers; the broker answers
its client when its own image has the topic. A deletion starts with a mark in the store; it
completes even if controllers fail meanwhile.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.ids import TopicId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.check import check_new_topic
from ottla.broker.cluster.registration import known_racks
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import CONSUMER_OFFSETS, automatic_topic
from ottla.broker.topics.operations import creation, growth
from ottla.coordination.interface.store import (
    BadVersion,
    Check,
    Create,
    Delete,
    NodeExists,
    NoNode,
    Operation,
    Store,
)
from ottla.metadata import paths
from ottla.metadata.image import INTERNAL_TOPICS, ClusterImage, TopicImage
from ottla.metadata.loader import load_topics
from ottla.metadata.nodes import topic_id_of
from ottla.metadata.topic_plan import (
    Registered,
    RequestedTopic,
    TopicDefaults,
    plan_growth,
    plan_topic,
)
from ottla.metadata.undo import UNKNOWN_AUTHOR, Author, decode_deleted_topic, encode_author

__all__ = ["CONSUMER_OFFSETS", "TopicOutcome", "Topics", "unknown_topic"]

_log = logging.getLogger(__name__)

# How long a request without a timeout waits for the controller.
PATIENCE_MS = 30_000


@dataclass(frozen=True, slots=True)
class TopicOutcome:
    """The result for one topic of a request: the current topic, or an error."""

    name: str
    topic: TopicImage | None = None
    error: OttlaError | None = None


class ImageWait(Protocol):
    """Waits until the image fulfils a condition."""

    async def wait_for(self, condition: Callable[[ClusterImage], bool], timeout_s: float) -> bool:
        """Return True as soon as the image fulfils `condition`, False after the timeout."""
        ...


class Topics:
    """Carries out topic changes that clients request from this broker."""

    def __init__(
        self,
        view: ClusterView,
        store: Store,
        settings: BrokerSettings,
        updates: ImageWait,
        *,
        random_bytes: Callable[[int], bytes] = random_bytes,
    ) -> None:
        self._view = view
        self._store = store
        self._settings = settings
        self._updates = updates
        self._random_bytes = random_bytes
        # The last logged reason why an internal topic cannot be created. Clients ask repeatedly, so
        # it is logged once.
        self._logged_wait = ""
        # The running automatic creations, in order of their start.
        self._tasks: dict[asyncio.Task[None], None] = {}

    def close(self) -> None:
        """Cancel running automatic creations, because the broker stops."""
        for task in self._tasks:
            task.cancel()

    async def create(
        self,
        new_topics: Sequence[RequestedTopic],
        *,
        validate_only: bool = False,
        timeout_ms: int = PATIENCE_MS,
    ) -> list[TopicOutcome]:
        """Create topics independently of each other; results are in the order of the request."""
        registered = await known_racks(self._store)
        image = self._view.image
        outcomes: list[TopicOutcome] = []
        for new in new_topics:
            try:
                topic = self._plan(new, image, registered)
                if not validate_only:
                    await self._write(topic)
                    image = image.with_topic(topic)
                outcomes.append(TopicOutcome(new.name, topic))
            except OttlaError as error:
                outcomes.append(TopicOutcome(new.name, error=error))
        if validate_only:
            return outcomes
        created = [outcome.topic for outcome in outcomes if outcome.topic is not None]
        shown = await self._updates.wait_for(
            lambda now: all(topic.id in now.topics_by_id for topic in created), timeout_ms / 1000
        )
        if shown:
            return outcomes
        now = self._view.image
        return [
            outcome
            if outcome.topic is None or outcome.topic.id in now.topics_by_id
            else TopicOutcome(outcome.name, error=_not_in_time("created", outcome.name))
            for outcome in outcomes
        ]

    async def auto_create(self, name: str) -> TopicImage:
        """Return the topic; create it with default settings if needed. Raises OttlaError."""
        topic = self._view.image.topic(name)
        if topic is not None:
            return topic
        (outcome,) = await self.create([await self.automatic(name)])
        if outcome.topic is not None:
            return outcome.topic
        assert outcome.error is not None
        if outcome.error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            # Another request has created it first, on this broker or another.
            await self._updates.wait_for(lambda now: name in now.topics, PATIENCE_MS / 1000)
            topic = self._view.image.topic(name)
            if topic is not None:
                return topic
        raise outcome.error

    def auto_create_then(
        self, names: Sequence[str], done: Callable[[Mapping[str, OttlaError]], None]
    ) -> None:
        """Create the topics in the background, then call `done` with the errors by topic."""
        task = asyncio.get_running_loop().create_task(self._auto_create_all(names, done))
        self._tasks[task] = None
        task.add_done_callback(self._tasks.pop)

    async def grow(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
        timeout_ms: int = PATIENCE_MS,
    ) -> TopicImage:
        """Add partitions until there are `count`. Raises OttlaError."""
        while True:
            image = self._view.image
            if image.topic(name) is None:
                raise unknown_topic(name)
            registered = await known_racks(self._store)
            before = (await load_topics(self._store, [name])).get(name)
            if before is None:
                raise unknown_topic(name)
            start = self._random_start()
            apart = self._settings.keeps_apart
            topic = plan_growth(before, count, assignments, image, start, registered, apart=apart)
            if validate_only:
                return topic
            try:
                await self._store.multi(growth(before, topic))
            except (BadVersion, NodeExists, NoNode):
                # Another broker changed the topic meanwhile.
                continue
            break

        def is_grown(now: ClusterImage) -> bool:
            known = now.topics_by_id.get(topic.id)
            return known is None or len(known.partitions) >= count

        if not await self._updates.wait_for(is_grown, timeout_ms / 1000):
            raise _not_in_time("grown", name)
        return topic

    async def restore(
        self, topic_id: UUID, name: str, *, timeout_ms: int = PATIENCE_MS
    ) -> TopicImage:
        """Create a deleted topic again, with its id, settings and records. Raises OttlaError."""
        path = paths.deleted_topic(topic_id)
        node = await self._store.get(path)
        deleted = None if node is None else decode_deleted_topic(path, node.data)
        if node is None or deleted is None or deleted.topic.name != name:
            raise _not_in_trash(name)
        topic = deleted.restored()
        try:
            await self._write(topic, [Delete(path, node.version)])
        except (NoNode, BadVersion):
            raise _not_in_trash(name) from None

        def is_shown(now: ClusterImage) -> bool:
            return topic.id in now.topics_by_id

        if not await self._updates.wait_for(is_shown, timeout_ms / 1000):
            raise _not_in_time("restored", name)
        return topic

    async def delete(
        self,
        topics: Sequence[TopicImage],
        author: Author = UNKNOWN_AUTHOR,
        *,
        timeout_ms: int = PATIENCE_MS,
    ) -> list[TopicOutcome]:
        """Delete topics independently of each other; results are in the order of the request.

        Waits until all replicas are deleted, except on dead brokers, which delete their replicas
        when they are back.
        """
        outcomes = [await self._mark(topic, author) for topic in topics]
        going = [outcome.topic for outcome in outcomes if outcome.topic is not None]
        ids = {topic.id for topic in going}
        await self._updates.wait_for(
            lambda now: ids.isdisjoint(now.topics_by_id), timeout_ms / 1000
        )
        for topic in going:
            await self._wait_until_gone(topic, timeout_ms)
        now = self._view.image
        return [
            TopicOutcome(outcome.name, error=_not_in_time("deleted", outcome.name))
            if outcome.topic is not None and outcome.topic.id in now.topics_by_id
            else outcome
            for outcome in outcomes
        ]

    async def _wait_until_gone(self, topic: TopicImage, timeout_ms: int) -> None:
        """Wait for the deletion, so that a topic of the same name can be created at once."""
        alive = self._view.image.brokers
        if any(broker not in alive for p in topic.partitions for broker in p.replicas):
            return
        gone = asyncio.Event()
        path = paths.topic_deletion(topic.name)
        watch = self._store.watch_data(path, gone.set)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                while await self._store.get(path) is not None:
                    await gone.wait()
                    gone.clear()
        except TimeoutError:
            return
        finally:
            watch.cancel()

    async def automatic(self, name: str) -> RequestedTopic:
        """Return the settings for creating a topic automatically; see `automatic_topic`.

        Raises OttlaError(COORDINATOR_NOT_AVAILABLE) if there are too few brokers for an internal
        topic.
        """
        if name not in INTERNAL_TOPICS:
            return RequestedTopic(name)
        known = await known_racks(self._store)
        try:
            racks = {broker.id: broker.rack for broker in self._view.image.brokers.values()}
            return automatic_topic(name, self._settings, known | racks)
        except OttlaError as error:
            if self._logged_wait != error.message:
                self._logged_wait = error.message
                _log.warning("%s", error.message)
            raise

    async def _auto_create_all(
        self, names: Sequence[str], done: Callable[[Mapping[str, OttlaError]], None]
    ) -> None:
        failed: dict[str, OttlaError] = {}
        for name in names:
            try:
                await self.auto_create(name)
            except OttlaError as error:
                failed[name] = error
            except Exception:  # noqa: BLE001  # The supervisor of this task: the client gets an answer.
                _log.exception("creating topic %s failed unexpectedly", name)
                failed[name] = OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "see the line above")
        done(failed)

    def _plan(self, new: RequestedTopic, image: ClusterImage, registered: Registered) -> TopicImage:
        defaults = TopicDefaults(
            self._settings.integer("num.partitions"),
            self._settings.integer("default.replication.factor"),
        )
        topic_id = TopicId(topic_id_of(self._random_bytes(16)))
        start = self._random_start()
        apart = self._settings.keeps_apart
        topic = plan_topic(new, topic_id, image, defaults, start, registered, apart=apart)
        check_new_topic(topic.configs, topic.replication_factor, self._settings)
        return topic

    async def _write(self, topic: TopicImage, first: Sequence[Operation] = ()) -> None:
        try:
            await self._store.multi([*first, *creation(topic)])
        except NodeExists as error:
            message = f"Topic '{topic.name}' already exists."
            if await self._store.get(paths.topic_deletion(topic.name)) is not None:
                message = (
                    f"Topic '{topic.name}' is being deleted, and its name is free once every broker"
                    " has removed its replicas. A broker that is down removes them when it is back;"
                    " one that is gone for good is removed by `ottla broker remove ID`."
                )
            raise OttlaError(ErrorCode.TOPIC_ALREADY_EXISTS, message) from error
        _log.info(
            "created topic %s with %d partition(s), id %s",
            topic.name,
            len(topic.partitions),
            topic.id,
        )

    async def _mark(self, topic: TopicImage, author: Author) -> TopicOutcome:
        current = self._view.image.topic_by_id(topic.id)
        if current is None:
            return TopicOutcome(topic.name, error=unknown_topic(topic.name))
        mark: list[Operation] = [
            Check(paths.topic_mark(topic.id)),
            Create(paths.topic_deletion(topic.name), encode_author(author)),
        ]
        try:
            await self._store.multi(mark)
        except NodeExists:
            return TopicOutcome(topic.name, current)
        except NoNode:
            return TopicOutcome(topic.name, error=unknown_topic(topic.name))
        except OttlaError as error:
            return TopicOutcome(topic.name, error=error)
        _log.info("deleting topic %s, id %s", topic.name, topic.id)
        return TopicOutcome(topic.name, current)

    def _random_start(self) -> int:
        return int.from_bytes(self._random_bytes(2), "big")


def patience_ms(asked_ms: int) -> int:
    """Return the timeout of a request, or a default, because Kafka's tools may set none."""
    return asked_ms if asked_ms > 0 else PATIENCE_MS


def unknown_topic(name: str) -> OttlaError:
    """Return the error for a missing topic."""
    return OttlaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"Topic '{shortened(name)}' does not exist; list the topics to see its "
        "right name, or create it.",
    )


def _not_in_trash(name: str) -> OttlaError:
    return OttlaError(
        ErrorCode.UNKNOWN_TOPIC_ID,
        f"The deleted topic '{shortened(name)}' is not in the trash: its time was over, its disk "
        "was full, or it was restored already.",
    )


def _not_in_time(done: str, name: str) -> OttlaError:
    return OttlaError(
        ErrorCode.REQUEST_TIMED_OUT,
        f"Topic '{shortened(name)}' is not {done} in time; it will be as soon as the controller "
        "gets to it: look again later.",
    )
