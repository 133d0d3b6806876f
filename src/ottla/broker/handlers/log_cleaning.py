"""The handlers of Ottla's own APIs about compaction and retention."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.compaction.cleaner import Cleaner
from ottla.broker.lags.reader_place import Places
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, brokers_only, cluster, resource, shown
from ottla.broker.requests.request import RequestContext
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.security.names import AclOperation, AclResource
from ottla.storage.cleaner.job import CleaningOutcome
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.retention import Hold, bytes_per_ms, deadline
from ottla.wire.messages.log_cleaning import (
    CompactionPass,
    CompactLogRequest,
    CompactLogResponse,
    DescribeCleanerRequest,
    DescribeCleanerResponse,
    FailedLog,
    LastPass,
    OffsetDeadline,
    ReaderLagRequest,
    ReaderLagResponse,
    ReaderLagTopic,
    ReaderLagTopicResult,
    ReaderOffset,
    ReaderPlace,
    ReaderStanding,
    RetentionStandingRequest,
    RetentionStandingResponse,
)

DESCRIBE, ESTIMATE, CLEAN = 0, 1, 2


def _changes(body: CompactLogRequest, response: CompactLogResponse) -> Iterator[AdminChange]:
    """Return an audit event for a requested compaction; other actions only describe the log."""
    if body.action == CLEAN:
        detail = {"partition": body.partition, "action": "compact"}
        need = topic_need(AclOperation.ALTER, body.topic)
        yield AdminChange((need,), detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class CompactLog(Handler):
    """CompactLog (1003): describes the dirty part of a replica here; compacts it on request.

    An API of Ottla, advertised to Ottla's clients only. `ottla why compaction` and `ottla topic
    compact` send it to the broker of every replica.
    """

    api = Api(
        CompactLogRequest,
        CompactLogResponse,
        Versions(0, 0),
        needs=resource(AclOperation.ALTER, AclResource.TOPIC, lambda body: body.topic),
        changes=_changes,
    )

    partitions: Partitions
    cleaner: Cleaner

    async def handle(self, _request: RequestContext, body: CompactLogRequest) -> CompactLogResponse:
        """Compact the log if requested, and return its description."""
        partition = self.partitions.get(body.topic, body.partition)
        partition.check_readable()
        cleaner, config = self.cleaner, partition.config
        if not config.is_compacted:
            raise OttlaError(
                ErrorCode.POLICY_VIOLATION,
                f"{body.topic} is not compacted: set cleanup.policy=compact, or compact,delete",
            )
        if body.action not in (DESCRIBE, ESTIMATE, CLEAN):
            raise OttlaError(ErrorCode.INVALID_REQUEST, f"there is no action {body.action}")
        if body.action == CLEAN:
            if not cleaner.threads:
                raise OttlaError(
                    ErrorCode.POLICY_VIOLATION,
                    "this broker compacts nothing: log.cleaner.enable is false or "
                    "log.cleaner.threads is 0",
                )
            cleaner.clean_now(partition)
        estimate = await cleaner.estimate(partition) if body.action == ESTIMATE else None
        status, dirt = cleaner.status_of(partition), cleaner.dirt(partition)
        return CompactLogResponse(
            log_start_offset=partition.log_start_offset,
            log_end_offset=partition.log_end_offset,
            first_dirty=dirt.first_dirty,
            end=dirt.end,
            bound=dirt.bound,
            clean_bytes=dirt.clean_bytes,
            dirty_bytes=dirt.dirty_bytes,
            ratio_min=config.min_cleanable_dirty_ratio,
            is_overdue=dirt.overdue,
            is_enabled=cleaner.threads > 0,
            is_running=status.is_running,
            wanted_end=status.wanted_end,
            pass_count=status.passes,
            passes=[] if status.last is None else [_pass(status.last, status.last_at_ms)],
            estimates=[] if estimate is None else [_pass(estimate, -1)],
            failure=status.failure or None,
        )


def _pass(outcome: CleaningOutcome, at_ms: int) -> CompactionPass:
    return CompactionPass(
        end=outcome.end,
        keys=outcome.keys,
        records_read=outcome.records_read,
        records_kept=outcome.records_kept,
        records_aborted=outcome.records_aborted,
        tombstones_dropped=outcome.tombstones_dropped,
        bytes_read=outcome.bytes_read,
        bytes_kept=outcome.bytes_kept,
        elapsed_ms=outcome.elapsed_ms,
        at_ms=at_ms,
    )


@dataclass(slots=True, eq=False, repr=False)
class DescribeCleaner(Handler):
    """DescribeCleaner (1008), versions 0-1: describes the state of this broker's log cleaner.

    An API of Ottla, advertised to Ottla's clients only: `ottla cluster health` asks all brokers.
    `ottla doctor` compares their clocks by its answer.
    """

    api = Api(
        DescribeCleanerRequest,
        DescribeCleanerResponse,
        Versions(0, 1),
        needs=cluster(AclOperation.DESCRIBE),
    )

    cleaner: Cleaner
    clock: Clock

    def handle(
        self, _request: RequestContext, _body: DescribeCleanerRequest
    ) -> DescribeCleanerResponse:
        """Return a description of all compacted logs."""
        status = self.cleaner.status()
        last = []
        if status.last is not None:
            name, outcome, at_ms = status.last
            last.append(
                LastPass(
                    topic=name.topic,
                    partition=name.partition,
                    at_ms=at_ms,
                    elapsed_ms=outcome.elapsed_ms,
                    bytes_read=outcome.bytes_read,
                    bytes_kept=outcome.bytes_kept,
                )
            )
        return DescribeCleanerResponse(
            error_message=None,
            threads=status.threads,
            logs=status.logs,
            running=status.running,
            due=status.due,
            due_bytes=status.due_bytes,
            pass_count=status.passes,
            failure_count=status.failures,
            last=last,
            failed=[
                FailedLog(
                    topic=name.topic,
                    partition=name.partition,
                    why=failed.failure,
                    attempts=failed.attempts,
                    since_ms=failed.failed_since_ms,
                    retry_at_ms=failed.retry_at_ms,
                )
                for name, failed in status.failed
            ],
            now_ms=self.clock.now_ms(),
        )


_NEVER = -1


@dataclass(slots=True, eq=False, repr=False)
class RetentionStanding(Handler):
    """RetentionStanding (1013), version 0: shows when records go, and which readers delay it.

    An API of Ottla, advertised to Ottla's clients only. `ottla group describe` and `ottla why
    retention` send it.
    """

    api = Api(
        RetentionStandingRequest,
        RetentionStandingResponse,
        Versions(0, 0),
        needs=all_of(
            resource(AclOperation.DESCRIBE, AclResource.TOPIC, lambda body: body.topic),
            shown(
                lambda response: response.readers,
                AclOperation.DESCRIBE,
                AclResource.GROUP,
                lambda reader: reader.group_id,
            ),
        ),
    )

    view: ClusterView
    runtime: Runtime
    partitions: Partitions
    retention: RetentionKeeper

    async def handle(
        self, _request: RequestContext, body: RetentionStandingRequest
    ) -> RetentionStandingResponse:
        """Return the description of one partition. Raises OttlaError."""
        partition = self.partitions.get(body.topic, body.partition)
        partition.check_led()
        retention, config = self.retention, partition.config
        groups = sorted(config.hold_groups)
        readers = await retention.readers.committed(groups, partition.topic_partition)
        held, _ = retention.held.get(partition, (Hold(0), {}))
        now_ms = self.runtime.clock.now_ms()
        log = partition.log
        try:
            deadlines = [
                _deadline(partition, offset, now_ms, is_held=body.group_id in config.hold_groups)
                for offset in body.offsets
            ]
            rate = bytes_per_ms(log.segments.as_list(), now_ms) * 1000
        except OSError as error:
            raise storage_error(error, log.folder, "read the times of segments") from error
        return RetentionStandingResponse(
            broker_id=self.view.broker_id,
            log_start_offset=partition.log_start_offset,
            log_end_offset=partition.log_end_offset,
            size_bytes=log.size_bytes,
            bytes_per_second=rate,
            cleanup_policy=",".join(sorted(config.cleanup_policy)),
            retention_ms=config.retention_ms,
            retention_bytes=config.retention_bytes,
            hold_max_bytes=config.hold_max_bytes,
            hold_max_ms=config.hold_max_ms,
            deadlines=deadlines,
            readers=[
                ReaderStanding(group_id=group, committed=committed)
                for group, committed in readers.items()
            ],
            held_bytes=held.held_bytes,
            held_since_ms=held.held_since_ms,
        )


def _deadline(partition: Partition, offset: int, now_ms: int, *, is_held: bool) -> OffsetDeadline:
    log = partition.log
    found = deadline(
        log.segments.as_list(),
        partition.config,
        max(offset, log.log_start_offset),
        log_end_offset=log.log_end_offset,
        now_ms=now_ms,
        is_held=is_held,
    )
    left_ms = _NEVER if found.left_ms is None else found.left_ms
    return OffsetDeadline(offset=offset, left_ms=left_ms, setting=found.setting)


# Readers that are looked up in one turn of the loop.
_READERS = 100


@dataclass(slots=True, eq=False, repr=False)
class ReaderLag(Handler):
    """ReaderLag (1030), version 0: shows where readers are in partitions that this broker leads.

    Between brokers only: the coordinator of groups asks for the figures of its metrics.
    """

    api = Api(ReaderLagRequest, ReaderLagResponse, Versions(0, 0), needs=brokers_only)

    runtime: Runtime
    partitions: Partitions
    places: Places

    async def handle(self, _request: RequestContext, body: ReaderLagRequest) -> ReaderLagResponse:
        """Return a place, or an error, for each reader."""
        return ReaderLagResponse(topics=[await self._topic(topic) for topic in body.topics])

    async def _topic(self, topic: ReaderLagTopic) -> ReaderLagTopicResult:
        now_ms = self.runtime.clock.now_ms()
        places = []
        for number, reader in enumerate(topic.readers, 1):
            places.append(self._place(topic.name, reader, now_ms))
            if number % _READERS == 0:
                await asyncio.sleep(0)
        return ReaderLagTopicResult(places=places)

    def _place(self, topic: str, reader: ReaderOffset, now_ms: int) -> ReaderPlace:
        try:
            partition = self.partitions.get(topic, reader.partition)
            found = self.places.find(partition, reader.offset, reader.group_id, now_ms)
        except OttlaError as error:
            return ReaderPlace(error_code=error.code)
        return ReaderPlace(
            log_start_offset=found.log_start_offset,
            high_watermark=found.high_watermark,
            since_ms=found.since_ms,
            left_ms=found.left_ms,
        )
