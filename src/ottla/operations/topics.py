"""Creates and deletes topics, and returns notes for their owner."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import TOPIC_SETTINGS
from ottla.client.admin import Admin
from ottla.client.admin.compaction import CompactAction, CompactionStatus
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType
from ottla.client.admin.topics import BROKER_DEFAULT
from ottla.client.connection.view import TopicDescription
from ottla.diagnosis.consequences import away_sentence, notes
from ottla.diagnosis.partitions import brokers_down, fewest_alive
from ottla.operations.settings import naming_nearest

DELETE_DELAY = "file.delete.delay.ms"
TRASH = "delete.topic.trash.ms"


@dataclass(frozen=True, slots=True)
class CreatedTopic:
    """A topic after `create_topic`. `is_new`: it did not exist before. `live`: the live brokers."""

    view: TopicDescription
    is_new: bool
    live: tuple[int, ...]
    configs: Mapping[str, ConfigEntry]

    @property
    def values(self) -> dict[str, str | None]:
        """Return the effective settings."""
        return {entry.name: entry.value for entry in self.configs.values()}

    @property
    def replication_factor(self) -> int:
        return len(self.view.partitions[0].replicas)

    @property
    def brokers_down(self) -> tuple[int, ...]:
        """Return the brokers that have replicas of the topic and are down."""
        return brokers_down([self.view], self.live)

    @property
    def notes(self) -> list[str]:
        """Return notes for the topic's owner, a sentence each."""
        down = self.brokers_down
        found = notes(self.replication_factor, self.values)
        if down:
            least = fewest_alive(self.view, self.live)
            found.insert(0, away_sentence(down, least, self.values))
        return found


@dataclass(frozen=True, slots=True)
class DeletedTopics:
    """When the brokers delete the files, and which brokers are down and delete them later."""

    delay_ms: int
    brokers_down: tuple[int, ...]
    trash_ms: int


async def create_topic(
    admin: Admin,
    name: str,
    partitions: int | None,
    replication_factor: int | None,
    settings: Mapping[str, str],
    *,
    if_not_exists: bool = False,
) -> CreatedTopic:
    """Create a topic. None means the broker's default number.

    Raises OttlaError if the broker refuses; for an unknown setting it suggests a similar name.
    """
    is_new = True
    try:
        await admin.topics.create(
            name, partitions or BROKER_DEFAULT, replication_factor or BROKER_DEFAULT, settings
        )
    except OttlaError as error:
        if not (if_not_exists and error.code is ErrorCode.TOPIC_ALREADY_EXISTS):
            raise naming_nearest(error, settings, TOPIC_SETTINGS) from None
        is_new = False
    (view,) = await admin.topics.describe_all([name])
    live = tuple(broker.broker_id for broker in (await admin.cluster.describe()).brokers)
    configs = await admin.configs.describe(ConfigResourceType.TOPIC, name)
    return CreatedTopic(view, is_new, live, configs)


async def delete_topics(admin: Admin, names: Sequence[str]) -> DeletedTopics:
    """Delete topics with all their records. Raises UnknownTopic before it deletes any."""
    views = await admin.topics.describe_all(names)
    live = await admin.cluster.brokers()
    delays_ms = [await _delete_delay_ms(admin, name) for name in names]
    trash_ms = await _trash_ms(admin)
    await admin.topics.delete(names)
    return DeletedTopics(max(delays_ms), brokers_down(views, live), trash_ms)


async def _delete_delay_ms(admin: Admin, name: str) -> int:
    """Return how long the brokers keep the files of a deleted topic, in ms."""
    found = await admin.configs.describe(ConfigResourceType.TOPIC, name, [DELETE_DELAY])
    return int(found[DELETE_DELAY].value or 0)


async def _trash_ms(admin: Admin) -> int:
    """Return how long a deleted topic can be restored, in ms; 0 if the brokers keep none."""
    broker_id = str((await admin.cluster.describe()).controller_id)
    found = await admin.configs.describe(ConfigResourceType.BROKER, broker_id, [TRASH])
    return int(found[TRASH].value or 0) if TRASH in found else 0


_POLL_S = 0.1


async def compact(
    admin: Admin, topic: str, *, timeout_s: float | None = None
) -> list[CompactionStatus]:
    """Request compaction of every replica of the topic now; with `timeout_s`, wait for it.

    Raises UnknownTopic, BrokerRefused if the topic is not compacted, REQUEST_TIMED_OUT; and,
    with `timeout_s`, UNKNOWN_SERVER_ERROR with the reasons of the brokers that failed.
    """
    standings = await admin.compaction.describe_topic(topic, CompactAction.CLEAN)
    if timeout_s is None:
        return standings
    loop = asyncio.get_running_loop()
    deadline_s = loop.time() + timeout_s
    while not all(is_done(one) for one in standings):
        if loop.time() >= deadline_s:
            waiting = sorted({str(one.name) for one in standings if not is_done(one)})
            raise OttlaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"not compacted after {timeout_s} s: {', '.join(waiting)}; "
                f"`ottla why compaction {waiting[0]}` says what holds it up",
            )
        await asyncio.sleep(_POLL_S)
        standings = await admin.compaction.describe_topic(topic)
    failed = [f"broker {one.broker_id}: {one.failure}" for one in standings if one.failure]
    if failed:
        raise OttlaError(ErrorCode.UNKNOWN_SERVER_ERROR, "; ".join(failed))
    return standings


def is_done(one: CompactionStatus) -> bool:
    """Whether the cleaner has finished the request, or failed."""
    return one.wanted_end < 0 and not one.is_running
