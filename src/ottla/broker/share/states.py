"""The share coordinator: the partitions of `__share_group_state` that this broker leads."""

from collections.abc import Callable
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import BrokerId
from ottla.base.settings import BrokerSettings
from ottla.broker.coordinating import Shards, ShardsStatus
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.share.state_shard import Command, ShareStateShard
from ottla.broker.topics.internal_topics import SHARE_GROUP_STATE
from ottla.metadata.nodes import topic_id_text, topic_id_value
from ottla.share.coordinator import KeyAnswer
from ottla.share.records import ShareKey
from ottla.share.settings import ShareStateSettings


class _Ticket:
    """Passes the answer of a command to a function."""

    __slots__ = ("_on_answer",)

    def __init__(self, on_answer: Callable[[KeyAnswer], None]) -> None:
        self._on_answer = on_answer

    def give(self, message: Any) -> None:
        self._on_answer(message)

    def fail(self, code: ErrorCode) -> None:
        self._on_answer(KeyAnswer(code))


class ShareStates:
    """Runs commands on share state with the shard that holds the key."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        settings: BrokerSettings,
        partitions: Partitions,
    ) -> None:
        self._runtime = runtime
        self._settings = ShareStateSettings(
            settings.integer("share.coordinator.snapshot.update.records.per.snapshot"),
            settings.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        )
        self._commit_timeout_ms = settings.integer("share.coordinator.write.timeout.ms")
        self._load_bytes = settings.integer("share.coordinator.load.buffer.size")
        self._prune_interval_ms = settings.integer(
            "share.coordinator.state.topic.prune.interval.ms"
        )
        # Whether the pruning timer runs: it starts with the first shard.
        self._has_timer = False
        self._shards = Shards(SHARE_GROUP_STATE, view, runtime, partitions, self._shard_of)

    def start(self) -> None:
        """Load the state of all partitions that this broker leads."""
        self._shards.take_up()

    def on_role(self, partition: Partition) -> None:
        """Load the state of a partition that this broker leads now, or drop it if it does not."""
        self._shards.on_role(partition)

    def close(self) -> None:
        """Close all shards: the broker is stopping."""
        self._shards.close()

    def status(self) -> ShardsStatus:
        """The partitions of `__share_group_state` that are led here."""
        return self._shards.status()

    def partition_index(self, key: str) -> int | None:
        """The partition of the topic for a key's text; None while the topic does not exist."""
        return self._shards.index_of(key)

    def coordinator_of(self, key: ShareKey) -> BrokerId | None:
        """The live broker that is the key's share coordinator; None while there is none."""
        return self._shards.leader_of(key_text(key))

    def run(self, key: ShareKey, command: Command, on_answer: Callable[[KeyAnswer], None]) -> None:
        """Run a command on a key; `on_answer` is called with its answer or error."""
        try:
            shard = self._shards.find(key_text(key), "share partition")
            shard.run(_Ticket(on_answer), command)
        except OttlaError as error:
            on_answer(KeyAnswer(error.code, message=error.message))

    def _shard_of(self, partition: Partition) -> ShareStateShard:
        if not self._has_timer:
            self._has_timer = True
            self._runtime.purgatory.schedule(self._prune_interval_ms, self._prune)
        return ShareStateShard(
            partition,
            self._settings,
            self._runtime.clock,
            self._runtime.purgatory,
            commit_timeout_ms=self._commit_timeout_ms,
            load_bytes=self._load_bytes,
        )

    def _prune(self) -> None:
        if self._shards.closed:
            return
        for shard in self._shards:
            shard.upkeep()
        self._runtime.purgatory.schedule(self._prune_interval_ms, self._prune)


def key_text(key: ShareKey) -> str:
    """A key as in FindCoordinator (KIP-932); its hash gives the partition."""
    return f"{key.group_id}:{topic_id_text(key.topic_id)}:{key.partition}"


def require_key(text: str) -> None:
    """Raise OttlaError (INVALID_REQUEST) if `text` is not a key of share state."""
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
