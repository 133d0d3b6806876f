"""Creates, grows and deletes topics: through the store first, then on this broker's disks.

What is in the store holds. A topic is written there with all its partitions in one `multi`, so
that a crash leaves the whole topic or nothing of it; folders follow, and are completed at the
next start. A deletion is marked first, so that a crash in its middle finishes it later.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicId
from ottla.base.settings import BrokerSettings
from ottla.base.settings.check import check_topic_configs
from ottla.base.settings.setting import shortened
from ottla.broker.internal_topics import CONSUMER_OFFSETS, automatic_topic
from ottla.broker.topic_operations import creation, growth, removal
from ottla.coordination.store import (
    Create,
    NodeExists,
    Operation,
    Result,
    Store,
    StoreUnavailable,
)
from ottla.metadata import paths
from ottla.metadata.image import ClusterImage, TopicImage
from ottla.metadata.loader import load_image
from ottla.metadata.topic_id import topic_id_of
from ottla.metadata.topic_plan import NewTopic, TopicDefaults, plan_growth, plan_topic

__all__ = ["CONSUMER_OFFSETS", "ImageHolder", "Outcome", "PartitionHost", "Topics", "unknown_topic"]

_log = logging.getLogger(__name__)


class PartitionHost(Protocol):
    """Keeps this broker's partitions as an image says."""

    async def apply(self, image: ClusterImage) -> None:
        """Open, configure and delete partitions until they are what `image` says."""
        ...

    def update_configs(self, image: ClusterImage) -> None:
        """Carry changed settings into the partitions at once."""
        ...


class ImageHolder(Protocol):
    """Where the current image stands. Replaced as a whole."""

    image: ClusterImage


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one topic of a request: the topic as it is now, or why not."""

    name: str
    topic: TopicImage | None = None
    error: OttlaError | None = None


class Topics:
    """All changes of topics on this broker, one at a time."""

    def __init__(
        self,
        holder: ImageHolder,
        store: Store,
        settings: BrokerSettings,
        host: PartitionHost,
        *,
        random_bytes: Callable[[int], bytes] = random_bytes,
    ) -> None:
        self._holder = holder
        self._store = store
        self._settings = settings
        self._host = host
        self._random_bytes = random_bytes
        # Held by whoever changes the image, from reading it to replacing it.
        self.changing = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        # Whether the store may hold a change that the image lacks.
        self._in_doubt = False

    async def load(self, image: ClusterImage, deleting: Sequence[TopicImage]) -> None:
        """Take the image read at start: finish deletions, open what this broker leads."""
        async with self.changing:
            self._holder.image = image
            await self._host.apply(image)
            await self._finish_deletions(deleting)

    def close(self) -> None:
        """Give up automatic creations that still run: the broker stops."""
        for task in self._tasks:
            task.cancel()

    async def create(
        self, new_topics: Sequence[NewTopic], *, validate_only: bool = False
    ) -> list[Outcome]:
        """Create topics independently of each other; outcomes are in the order asked."""
        async with self.changing:
            image = await self._current()
            outcomes: list[Outcome] = []
            for new in new_topics:
                try:
                    topic = self._plan(new, image)
                    if not validate_only:
                        await self._write(topic)
                        image = image.with_topic(topic)
                    outcomes.append(Outcome(new.name, topic))
                except OttlaError as error:
                    outcomes.append(Outcome(new.name, error=error))
            await self._carry_out(image)
            return outcomes

    async def auto_create(self, name: str) -> TopicImage:
        """The topic, created as the settings say where it does not exist. Raises OttlaError."""
        topic = self._holder.image.topic(name)
        if topic is not None:
            return topic
        (outcome,) = await self.create([self.automatic(name)])
        if outcome.topic is not None:
            return outcome.topic
        assert outcome.error is not None
        if outcome.error.code is ErrorCode.TOPIC_ALREADY_EXISTS:
            topic = self._holder.image.topic(name)
            if topic is not None:
                return topic
        raise outcome.error

    def auto_create_then(
        self, names: Sequence[str], done: Callable[[Mapping[str, ErrorCode]], None]
    ) -> None:
        """Create the topics in the background, then call `done` with those that failed, and why."""
        task = asyncio.get_running_loop().create_task(self._auto_create_all(names, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def grow(
        self,
        name: str,
        count: int,
        assignments: Sequence[Sequence[int]] | None = None,
        *,
        validate_only: bool = False,
    ) -> TopicImage:
        """Add partitions until there are `count`. Raises OttlaError."""
        async with self.changing:
            image = await self._current()
            before = image.topic(name)
            if before is None:
                raise unknown_topic(name)
            topic = plan_growth(before, count, assignments, image, self._random_start())
            if validate_only:
                return topic
            version = (await self._commit(growth(before, topic)))[0]
            assert isinstance(version, int)
            topic = TopicImage(name, topic.id, topic.partitions, topic.configs, version)
            await self._carry_out(image.with_topic(topic))
            return topic

    async def delete(self, topics: Sequence[TopicImage]) -> list[Outcome]:
        """Delete topics independently of each other; outcomes are in the order asked."""
        async with self.changing:
            image = await self._current()
            outcomes = [await self._mark(topic) for topic in topics]
            going = [outcome.topic for outcome in outcomes if outcome.topic is not None]
            for topic in going:
                image = image.without_topic(topic.name)
            # Clients lose sight of the topics before their partitions go.
            self._holder.image = image
            if going:
                await self._host.apply(image)
            for topic in going:
                await self._commit(removal(topic))
            return outcomes

    def automatic(self, name: str) -> NewTopic:
        """What an automatically created topic looks like; internal ones have settings of theirs."""
        return automatic_topic(name, self._settings, len(self._holder.image.brokers))

    async def _auto_create_all(
        self, names: Sequence[str], done: Callable[[Mapping[str, ErrorCode]], None]
    ) -> None:
        failed: dict[str, ErrorCode] = {}
        for name in names:
            try:
                await self.auto_create(name)
            except OttlaError as error:
                failed[name] = error.code
            except Exception:  # noqa: BLE001  # The supervisor of this task: the client is told.
                _log.exception("creating topic %s failed unexpectedly", name)
                failed[name] = ErrorCode.UNKNOWN_SERVER_ERROR
        done(failed)

    def _plan(self, new: NewTopic, image: ClusterImage) -> TopicImage:
        defaults = TopicDefaults(
            self._settings.integer("num.partitions"),
            self._settings.integer("default.replication.factor"),
        )
        topic_id = TopicId(topic_id_of(self._random_bytes(16)))
        topic = plan_topic(new, topic_id, image, defaults, self._random_start())
        check_topic_configs(topic.configs, self._settings)
        return topic

    async def _write(self, topic: TopicImage) -> None:
        try:
            await self._commit(creation(topic))
        except NodeExists as error:
            raise OttlaError(
                ErrorCode.TOPIC_ALREADY_EXISTS, f"Topic '{topic.name}' already exists."
            ) from error
        _log.info(
            "created topic %s with %d partition(s), id %s",
            topic.name,
            len(topic.partitions),
            topic.id,
        )

    async def _mark(self, topic: TopicImage) -> Outcome:
        current = self._holder.image.topic_by_id(topic.id)
        if current is None:
            return Outcome(topic.name, error=unknown_topic(topic.name))
        try:
            await self._commit([Create(paths.topic_deletion(topic.name))])
        except OttlaError as error:
            return Outcome(topic.name, error=error)
        _log.info("deleting topic %s, id %s", topic.name, topic.id)
        return Outcome(topic.name, current)

    async def _commit(self, operations: Sequence[Operation]) -> list[Result]:
        try:
            return await self._store.multi(operations)
        except StoreUnavailable:
            self._in_doubt = True
            raise

    async def _current(self) -> ClusterImage:
        """The image; topics are read again where the fate of an earlier change is unknown."""
        image = self._holder.image
        if self._in_doubt:
            loaded = await load_image(self._store, image.cluster_id)
            image = replace(
                image, topics=loaded.image.topics, topics_by_id=loaded.image.topics_by_id
            )
            await self._carry_out(image)
            await self._finish_deletions(loaded.deleting)
            self._in_doubt = False
        return image

    async def _finish_deletions(self, deleting: Sequence[TopicImage]) -> None:
        for topic in deleting:
            _log.info("finishing the deletion of topic %s", topic.name)
            await self._commit(removal(topic))

    async def _carry_out(self, image: ClusterImage) -> None:
        """Bring the partitions in step, then show the image to clients."""
        if image is self._holder.image:
            return
        try:
            await self._host.apply(image)
        finally:
            self._holder.image = image

    def _random_start(self) -> int:
        return int.from_bytes(self._random_bytes(2), "big")


def unknown_topic(name: str) -> OttlaError:
    """The error for a topic that is not there."""
    return OttlaError(
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        f"Topic '{shortened(name)}' does not exist; list the topics to see its "
        "right name, or create it.",
    )
