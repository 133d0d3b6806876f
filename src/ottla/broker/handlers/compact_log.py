"""CompactLog (1003), version 0: describes the dirty part of a replica here; compacts it on request.

An API of Ottla, advertised to Ottla's clients only. `ottla why compaction` and `ottla topic
compact` send it to the broker of every replica.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cleaning.cleaner import Cleaner
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.auditing import AdminChange, topic_need
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import resource
from ottla.broker.requests.request import RequestContext
from ottla.security.names import AclOperation, AclResource
from ottla.storage.cleaner.job import CleaningOutcome
from ottla.wire.messages.log_cleaning import CompactionPass, CompactLogRequest, CompactLogResponse

DESCRIBE, ESTIMATE, CLEAN = 0, 1, 2


def _changes(body: CompactLogRequest, response: CompactLogResponse) -> Iterator[AdminChange]:
    """Return an audit line for a requested compaction; other actions only describe."""
    if body.action == CLEAN:
        detail = {"partition": body.partition, "action": "compact"}
        need = topic_need(AclOperation.ALTER, body.topic)
        yield AdminChange((need,), detail, response.error_code)


@dataclass(slots=True, eq=False, repr=False)
class CompactLog(Handler):
    """Serves CompactLog."""

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
        """Compact the log if requested, and describe it."""
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
