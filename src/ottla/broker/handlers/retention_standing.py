"""RetentionStanding (1013), version 0: shows when records go, and which readers delay it.

An API of Ottla, advertised to Ottla's clients only. `ottla group describe` and `ottla why
retention` send it.
"""

from dataclasses import dataclass

from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import all_of, resource, shown
from ottla.broker.requests.request import RequestContext
from ottla.broker.retention.keeper import RetentionKeeper
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.security.names import AclOperation, AclResource
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.retention import Hold, bytes_per_ms, deadline
from ottla.wire.messages.log_cleaning import (
    OffsetDeadline,
    ReaderStanding,
    RetentionStandingRequest,
    RetentionStandingResponse,
)

_NEVER = -1


@dataclass(slots=True, eq=False, repr=False)
class RetentionStanding(Handler):
    """Serves RetentionStanding."""

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
        """Describe one partition. Raises OttlaError."""
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
