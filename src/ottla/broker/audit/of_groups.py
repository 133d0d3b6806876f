"""Changes of groups, their offsets, and transactions that an administrator ends."""

from collections.abc import Iterator
from typing import Any

from ottla.broker.audit.details import cluster, few, few_of, first_code, group, partitions_code
from ottla.broker.requests.auditing import AdminChange
from ottla.security.audit.line import bounded
from ottla.security.names import AclOperation
from ottla.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from ottla.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse
from ottla.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from ottla.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from ottla.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse
from ottla.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse

_READ, _DELETE = AclOperation.READ, AclOperation.DELETE


def delete_groups(
    _body: DeleteGroupsRequest, response: DeleteGroupsResponse
) -> Iterator[AdminChange]:
    """A line for each group."""
    for one in response.results:
        yield AdminChange(group(_DELETE, one.group_id), {}, one.error_code)


def commit_offsets(
    body: OffsetCommitRequest, response: OffsetCommitResponse
) -> Iterator[AdminChange]:
    """A line for each topic, where the client is no member of the group.

    Tools that rewind a group commit like that; so do consumers that assign themselves partitions.
    """
    if body.member_id or body.generation_id_or_member_epoch >= 0:
        return
    codes = [partitions_code(one) for one in response.topics]
    for position, wanted in enumerate(body.topics):
        offsets = {part.partition_index: part.committed_offset for part in wanted.partitions}
        name = wanted.name or str(wanted.topic_id)
        detail = {"topic": bounded(name), "offsets": few(offsets)}
        code = codes[position] if position < len(codes) else 0
        yield AdminChange(group(_READ, body.group_id), detail, code, is_frequent=True)


def delete_offsets(
    body: OffsetDeleteRequest, response: OffsetDeleteResponse
) -> Iterator[AdminChange]:
    """A line for each topic."""
    codes = {one.name: partitions_code(one) for one in response.topics}
    for wanted in body.topics:
        partitions = few_of([part.partition_index for part in wanted.partitions])
        detail = {"topic": bounded(wanted.name), "partitions": partitions}
        code = response.error_code or codes.get(wanted.name, 0)
        yield AdminChange(group(_DELETE, body.group_id), detail, code)


def alter_share_offsets(
    body: AlterShareGroupOffsetsRequest, response: AlterShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """A line for each topic."""
    codes = {one.topic_name: partitions_code(one) for one in response.responses}
    for wanted in body.topics:
        offsets = {part.partition_index: part.start_offset for part in wanted.partitions}
        detail = {"topic": bounded(wanted.topic_name), "offsets": few(offsets)}
        code = response.error_code or codes.get(wanted.topic_name, 0)
        yield AdminChange(group(_READ, body.group_id), detail, code)


def delete_share_offsets(
    body: DeleteShareGroupOffsetsRequest, response: DeleteShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """A line for each topic."""
    codes = {one.topic_name: one.error_code for one in response.responses}
    for wanted in body.topics:
        code = response.error_code or codes.get(wanted.topic_name, 0)
        yield AdminChange(
            group(_DELETE, body.group_id), {"topic": bounded(wanted.topic_name)}, code
        )


def write_markers(
    body: WriteTxnMarkersRequest, response: WriteTxnMarkersResponse
) -> Iterator[AdminChange]:
    """A line for each producer: brokers' own markers are not watched."""
    codes = {
        one.producer_id: first_code(
            part.error_code for named in one.topics for part in named.partitions
        )
        for one in response.markers
    }
    for marker in body.markers:
        topics: dict[str, Any] = {
            bounded(named.name): few_of(named.partition_indexes) for named in marker.topics[:50]
        }
        detail = {
            "producer_id": marker.producer_id,
            "producer_epoch": marker.producer_epoch,
            "marker": "commit" if marker.transaction_result else "abort",
            "topics": topics,
        }
        yield AdminChange(cluster(AclOperation.ALTER), detail, codes.get(marker.producer_id, 0))
