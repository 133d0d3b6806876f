"""Changes of groups, their offsets, and transactions that an administrator ends."""

from collections.abc import Iterator

from ottla.broker.audit.details import answers, cluster, group, indexes, name_of, numbers, outcomes
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
    """Lines of each topic, where the client is no member of the group.

    Tools that rewind a group commit like that; so do consumers that assign themselves partitions.
    """
    if body.member_id or body.generation_id_or_member_epoch >= 0:
        return
    wanted = (
        (name_of(one), part.partition_index, part.committed_offset)
        for one in body.topics
        for part in one.partitions
    )
    needs = group(_READ, body.group_id)
    for name, code, offsets in outcomes(wanted, answers(response.topics)):
        detail = {"topic": bounded(name), "offsets": offsets}
        yield AdminChange(needs, detail, code, is_frequent=True)


def delete_offsets(
    body: OffsetDeleteRequest, response: OffsetDeleteResponse
) -> Iterator[AdminChange]:
    """Lines of each topic."""
    wanted = (
        (one.name, part.partition_index, None) for one in body.topics for part in one.partitions
    )
    needs = group(_DELETE, body.group_id)
    for name, code, parts in outcomes(wanted, answers(response.topics), response.error_code):
        yield AdminChange(needs, {"topic": bounded(name), "partitions": numbers(parts)}, code)


def alter_share_offsets(
    body: AlterShareGroupOffsetsRequest, response: AlterShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """Lines of each topic."""
    wanted = (
        (one.topic_name, part.partition_index, part.start_offset)
        for one in body.topics
        for part in one.partitions
    )
    needs = group(_READ, body.group_id)
    for name, code, offsets in outcomes(wanted, answers(response.responses), response.error_code):
        yield AdminChange(needs, {"topic": bounded(name), "offsets": offsets}, code)


def delete_share_offsets(
    body: DeleteShareGroupOffsetsRequest, response: DeleteShareGroupOffsetsResponse
) -> Iterator[AdminChange]:
    """A line for each topic."""
    codes = {one.topic_name: one.error_code for one in response.responses}
    needs = group(_DELETE, body.group_id)
    for wanted in body.topics:
        code = response.error_code or codes.get(wanted.topic_name, 0)
        yield AdminChange(needs, {"topic": bounded(wanted.topic_name)}, code)


def write_markers(
    body: WriteTxnMarkersRequest, response: WriteTxnMarkersResponse
) -> Iterator[AdminChange]:
    """Lines of each topic of each producer: brokers' own markers are not watched."""
    answered = {one.producer_id: one.topics for one in response.markers}
    for marker in body.markers:
        detail = {
            "producer_id": marker.producer_id,
            "producer_epoch": marker.producer_epoch,
            "marker": "commit" if marker.transaction_result else "abort",
        }
        wanted = indexes(marker.topics, "partition_indexes")
        for name, code, parts in outcomes(wanted, answers(answered.get(marker.producer_id, []))):
            of_topic = {"topic": bounded(name), "partitions": numbers(parts)}
            yield AdminChange(cluster(AclOperation.ALTER), {**detail, **of_topic}, code)
