"""Compaction on Ottla's brokers: the dirty part of each replica's log, and compaction on demand."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Literal

from ottla.base.ids import TopicPartition
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import checks_calls
from ottla.client.common.errors import check
from ottla.client.common.offset_account import filled
from ottla.wire.messages.log_cleaning import (
    CompactionPass,
    CompactLogRequest,
    CompactLogResponse,
    DescribeCleanerRequest,
    DescribeCleanerResponse,
)


class CompactAction(IntEnum):
    """The action requested of a broker: describe the log, estimate a cleaning, or clean."""

    DESCRIBE = 0
    ESTIMATE = 1
    CLEAN = 2


# The same actions as strings.
ActionName = Literal["describe", "estimate", "clean"]


@dataclass(frozen=True, slots=True)
class CleaningPass:
    """The effect of one cleaning of a log, which is clean up to `end` afterwards.

    For an estimate, `at_ms` is -1.
    """

    end: int
    keys: int
    records_read: int
    records_kept: int
    records_aborted: int
    tombstones_dropped: int
    bytes_read: int
    bytes_kept: int
    elapsed_ms: int
    at_ms: int


@dataclass(frozen=True, slots=True)
class CompactionStatus:
    """The state of the replica on one broker. Sizes in bytes, times in ms; -1 means none.

    Offsets [first_dirty, end) may be cleaned now; `bound` names what limits `end`.
    """

    name: TopicPartition
    broker_id: int
    log_start_offset: int
    log_end_offset: int
    first_dirty: int
    end: int
    bound: str
    clean_bytes: int
    dirty_bytes: int
    ratio_min: float
    is_overdue: bool
    is_enabled: bool
    is_running: bool
    wanted_end: int
    pass_count: int
    last: CleaningPass | None
    estimate: CleaningPass | None
    failure: str | None

    @property
    def ratio(self) -> float:
        """Return the dirty share of the cleanable part."""
        total = self.clean_bytes + self.dirty_bytes
        return self.dirty_bytes / total if total else 0.0


@dataclass(frozen=True, slots=True)
class FailedCleaning:
    """A log whose last `attempts` cleanings failed: since when, and when the next is due.

    Times in ms.
    """

    name: TopicPartition
    why: str
    attempts: int
    since_ms: int
    retry_at_ms: int


@dataclass(frozen=True, slots=True)
class CleanerStatus:
    """The state of a broker's cleaner; `threads` 0 means that it is switched off.

    Of its compacted `logs`, `running` are being cleaned now, and `due` more wait for cleaning, with
    `due_bytes` dirty bytes. `last` names the log of the last pass; `passes` and `failures` are
    counted since the broker started.
    """

    broker_id: int
    threads: int
    logs: int
    running: int
    due: int
    due_bytes: int
    passes: int
    failures: int
    last: TopicPartition | None
    last_at_ms: int
    last_elapsed_ms: int
    failed: tuple[FailedCleaning, ...]


@checks_calls()
class Compaction:
    """`admin.compaction`: the brokers' log cleaners, and compaction on demand."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def describe(
        self, partition: TopicPartition, action: CompactAction | ActionName = CompactAction.DESCRIBE
    ) -> list[CompactionStatus]:
        """Return the state of each replica of `partition`, by broker, after starting `action`.

        Raises UnknownTopic, ConnectionFailed if a replica's broker is not reachable, BrokerRefused
        if the topic is not compacted, UnsupportedByBroker if the brokers are not Ottla's.
        """
        standings = []
        for broker_id in (await self._calls.cluster.partition(partition)).replicas:
            request = CompactLogRequest(
                topic=partition.topic,
                partition=partition.partition,
                action=action
                if isinstance(action, CompactAction)
                else CompactAction[action.upper()],
            )
            answer = await self._calls.ask_ottla(
                broker_id, request, CompactLogResponse, "does not describe its cleaner"
            )
            check(answer.error_code, f"compact {partition}", answer.error_message)
            standings.append(_standing(partition, broker_id, answer))
        return standings

    async def cleaners(self, patience_s: float = 5.0) -> list[CleanerStatus]:
        """Return the state of each live broker's cleaner.

        Brokers are left out if they do not answer within `patience_s`, are not Ottla's, or too old.
        """

        async def ask(broker_id: int) -> CleanerStatus:
            answer = await self._calls.cluster.ask(
                broker_id, DescribeCleanerRequest(), DescribeCleanerResponse
            )
            check(answer.error_code, "describe the cleaner", answer.error_message)
            return _cleaner(broker_id, answer)

        live = await self._calls.retried(self._calls.brokers)
        return await self._calls.each_in_time(live, ask, patience_s)

    async def describe_topic(
        self, topic: str, action: CompactAction | ActionName = CompactAction.DESCRIBE
    ) -> list[CompactionStatus]:
        """Return what `describe` returns, for all partitions of a topic."""
        view = await self._calls.cluster.topic(topic)
        found: list[CompactionStatus] = []
        for entry in view.partitions:
            found += await self.describe(TopicPartition(topic, entry.partition), action)
        return found


def _standing(name: TopicPartition, broker_id: int, answer: CompactLogResponse) -> CompactionStatus:
    return filled(
        CompactionStatus,
        answer,
        name=name,
        broker_id=broker_id,
        last=_pass(answer.passes),
        estimate=_pass(answer.estimates),
    )


def _cleaner(broker_id: int, answer: DescribeCleanerResponse) -> CleanerStatus:
    last = answer.last[0] if answer.last else None
    return filled(
        CleanerStatus,
        answer,
        broker_id=broker_id,
        passes=answer.pass_count,
        failures=answer.failure_count,
        last=None if last is None else TopicPartition(last.topic, last.partition),
        last_at_ms=-1 if last is None else last.at_ms,
        last_elapsed_ms=0 if last is None else last.elapsed_ms,
        failed=tuple(
            filled(FailedCleaning, log, name=TopicPartition(log.topic, log.partition))
            for log in answer.failed
        ),
    )


def _pass(passes: Sequence[CompactionPass]) -> CleaningPass | None:
    return filled(CleaningPass, passes[0]) if passes else None
