"""The share coordinator: the partitions of `__share_group_state` that this broker leads."""

import logging
from collections.abc import Callable
from typing import Any

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.coordinators import Coordinators, Shard, Ticket
from ottla.broker.coordinators.replay import Losses, read_back
from ottla.broker.partitions.partition import OnBehalf, Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import SHARE_GROUP_STATE
from ottla.metadata.nodes import topic_id_text, topic_id_value
from ottla.record.codec import Record
from ottla.record.header import BatchHeader
from ottla.share.coordinator import KeyAnswer, ShareCoordinator, ShareDecision, ShareStateSettings
from ottla.share.records import ShareKey, ShareRecord, decode, encode

_log = logging.getLogger(__name__)

# Called with the coordinator, the ticket for the answer, and the time in ms since 1970.
Command = Callable[[ShareCoordinator, Any, int], ShareDecision]


class ShareStateShard(Shard[ShareCoordinator, ShareRecord]):
    """The share state in one partition of `__share_group_state`."""

    what = "share states"

    def __init__(
        self,
        partition: Partition,
        settings: ShareStateSettings,
        clock: Clock,
        purgatory: Purgatory,
        *,
        commit_timeout_ms: int,
        load_bytes: int,
    ) -> None:
        super().__init__(
            partition,
            clock,
            purgatory,
            commit_timeout_ms=commit_timeout_ms,
            load_bytes=load_bytes,
        )
        self._settings = settings

    def empty(self) -> ShareCoordinator:
        return ShareCoordinator(self._settings)

    async def replayed(self) -> ShareCoordinator:
        coordinator = self.empty()
        log = self.partition.log
        # The log start offset may be inside a batch.
        start = log.log_start_offset

        losses = Losses(self.partition.topic_partition)

        def take(header: BatchHeader, content: list[Record]) -> None:
            for record in content:
                if header.is_control or record.key is None or record.offset < start:
                    continue
                try:
                    found = decode(record.key, record.value)
                except OttlaError as error:
                    losses.note_record(record.offset, error.message or error.code.name)
                    continue
                if found is not None:
                    coordinator.apply(found, record.offset)
                elif record.value is not None:
                    kind = record.key[:2].hex()
                    losses.note_record(record.offset, f"a record of unknown kind 0x{kind}")

        await read_back(log, self.load_bytes, take, losses)
        self.report(losses)
        return coordinator

    def encode(self, record: ShareRecord) -> tuple[bytes, bytes | None]:
        return encode(record)

    def apply(
        self,
        coordinator: ShareCoordinator,
        record: ShareRecord,
        offset: int,
        _producer: OnBehalf | None,
    ) -> None:
        coordinator.apply(record, offset)

    def begin(self, coordinator: ShareCoordinator) -> None:
        if coordinator.states:
            _log.info("loaded %d share states of %s", len(coordinator.states), self.name)

    def release(self, _coordinator: ShareCoordinator | None, _code: ErrorCode) -> None:
        """Do nothing: requests wait only for commits, and the partition fails those itself."""

    # Hot: once per command.
    def run(self, ticket: Ticket, command: Command) -> None:
        """Run a command and answer it. Raises OttlaError (COORDINATOR_LOAD_IN_PROGRESS)."""
        decision = command(self.loaded(), ticket, self.clock.now_ms())
        if not decision.records or self.write(decision):
            self.answer(decision)

    def upkeep(self) -> None:
        """Rewrite old snapshots, and delete the records before the oldest snapshot."""
        coordinator = self.coordinator
        if coordinator is None:
            return
        decision = coordinator.refresh(self.clock.now_ms())
        if decision.records and not self.write(decision):
            return
        end = self.partition.log_end_offset
        self.partition.on_high_watermark(end, lambda code: self._prune(coordinator, code))

    def _prune(self, coordinator: ShareCoordinator, code: ErrorCode) -> None:
        if code is not ErrorCode.NONE or self.coordinator is not coordinator:
            return
        # A snapshot above the high watermark may be truncated after an election.
        start = min(
            coordinator.needed_from(self.partition.log_end_offset), self.partition.high_watermark
        )
        if start > self.partition.log_start_offset:
            try:
                self.partition.advance_log_start(start)
            except OttlaError as error:
                _log.warning(
                    "cannot delete old records of %s; tried again at the next interval: %s",
                    self.name,
                    error,
                )


class ShareStates(Coordinators[ShareStateShard]):
    """Runs commands on share state in the shard of their key."""

    def __init__(
        self,
        view: ClusterView,
        runtime: Runtime,
        settings: BrokerSettings,
        partitions: Partitions,
    ) -> None:
        super().__init__(SHARE_GROUP_STATE, view, runtime, partitions)
        self._settings = ShareStateSettings(
            settings.integer("share.coordinator.snapshot.update.records.per.snapshot"),
            settings.integer("share.coordinator.cold.partition.snapshot.interval.ms"),
        )
        self._commit_timeout_ms = settings.integer("share.coordinator.write.timeout.ms")
        self._load_bytes = settings.integer("share.coordinator.load.buffer.size")
        self._prune_interval_ms = settings.integer(
            "share.coordinator.state.topic.prune.interval.ms"
        )

    def start_timers(self) -> None:
        self.every(self._prune_interval_ms, ShareStateShard.upkeep)

    def run(self, key: ShareKey, command: Command, on_answer: Callable[[KeyAnswer], None]) -> None:
        """Run a command on a key; `on_answer` is called with its answer or error."""
        try:
            shard = self.find(key_text(key), "share partition")
            shard.run(Ticket(on_answer, KeyAnswer), command)
        except OttlaError as error:
            on_answer(KeyAnswer(error.code, message=error.message))

    def new_shard(self, partition: Partition) -> ShareStateShard:
        return ShareStateShard(
            partition,
            self._settings,
            self._runtime.clock,
            self._runtime.purgatory,
            commit_timeout_ms=self._commit_timeout_ms,
            load_bytes=self._load_bytes,
        )


def key_text(key: ShareKey) -> str:
    """Return a key in the format of FindCoordinator (KIP-932); its hash gives the partition."""
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
