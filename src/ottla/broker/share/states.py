"""All share state this broker coordinates, by the partitions of `__share_group_state` it leads."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.coordinating import Shards
from ottla.broker.partitions.partition import Partition
from ottla.broker.share.state_shard import Command, ShareStateShard
from ottla.broker.topics.internal_topics import SHARE_GROUP_STATE
from ottla.metadata.topic_id import topic_id_text, topic_id_value
from ottla.share.coordinator import Answered
from ottla.share.records import ShareKey
from ottla.share.settings import ShareStateSettings

if TYPE_CHECKING:
    from ottla.broker.process.broker import Broker


class _Ticket:
    """Gives what became of a command to a function."""

    __slots__ = ("_on_answer",)

    def __init__(self, on_answer: Callable[[Answered], None]) -> None:
        self._on_answer = on_answer

    def give(self, message: Any) -> None:
        self._on_answer(message)

    def fail(self, code: ErrorCode) -> None:
        self._on_answer(Answered(code))


class ShareStates:
    """Runs commands on share state by the shards that hold it."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        settings = broker.settings
        self._settings = ShareStateSettings(
            settings.integer("share.coordinator.snapshot.update.records.per.snapshot"),
            settings.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        )
        self._commit_timeout_ms = settings.integer("share.coordinator.write.timeout.ms")
        self._load_bytes = settings.integer("share.coordinator.load.buffer.size")
        self._prune_interval_ms = settings.integer(
            "share.coordinator.state.topic.prune.interval.ms"
        )
        self._looks = False
        self._shards = Shards(
            SHARE_GROUP_STATE, broker, broker.partitions, broker.purgatory, self._shard_of
        )

    def start(self) -> None:
        """Load what is on disk."""
        self._shards.take_up()

    def on_role(self, partition: Partition) -> None:
        """A partition changed hands: its state is loaded here, or given up."""
        self._shards.on_role(partition)

    def close(self) -> None:
        """The broker stops."""
        self._shards.close()

    def partition_index(self, key: str) -> int | None:
        """Which partition of the topic holds a key, as text; None while there is no topic."""
        return self._shards.index_of(key)

    def run(self, key: ShareKey, command: Command, on_answer: Callable[[Answered], None]) -> None:
        """Carry out a command on a key; `on_answer` is told what became of it."""
        try:
            shard = self._shards.find(key_text(key), "share partition")
            shard.run(_Ticket(on_answer), command)
        except OttlaError as error:
            on_answer(Answered(error.code, message=error.message))

    def _shard_of(self, partition: Partition) -> ShareStateShard:
        if not self._looks:
            self._looks = True
            self._broker.purgatory.schedule(self._prune_interval_ms, self._look)
        return ShareStateShard(
            partition,
            self._settings,
            self._broker.clock,
            self._broker.purgatory,
            commit_timeout_ms=self._commit_timeout_ms,
            load_bytes=self._load_bytes,
        )

    def _look(self) -> None:
        if self._shards.closed:
            return
        for shard in self._shards:
            shard.upkeep()
        self._broker.purgatory.schedule(self._prune_interval_ms, self._look)


def key_text(key: ShareKey) -> str:
    """A key as FindCoordinator names it, by which its partition is found."""
    return f"{key.group_id}:{topic_id_text(key.topic_id)}:{key.partition}"


def require_key(text: str) -> None:
    """Raises OttlaError (INVALID_REQUEST) where `text` is no key of share state."""
    group_id, _, rest = text.rpartition(":")
    group_id, _, topic_id = group_id.rpartition(":")
    try:
        if not group_id or int(rest) < 0:
            raise ValueError(text)
        topic_id_value(topic_id)
    except ValueError as error:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"{text!r} names no share partition; it must be like group:topic id:partition",
        ) from error
