"""What producers and transactions need."""

from typing import Any

from ottla.base.errors import ErrorCode
from ottla.broker.access.check import RequestCheck
from ottla.broker.access.guards import Amend, DeniedAnswer, each, topic_or_id
from ottla.record.header import ATTRIBUTES_POSITION, HEADER_SIZE, TRANSACTIONAL_FLAG
from ottla.security.names import CLUSTER_NAME, AclOperation, AclResource
from ottla.wire.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopicResult,
)
from ottla.wire.messages.init_producer_id import InitProducerIdRequest
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest

_WRITE, _TRANSACTIONAL_ID = AclOperation.WRITE, AclResource.TRANSACTIONAL_ID
_BROKERS_FROM = 4

_topics = each("topic_data", "responses", topic_or_id(_WRITE))


def produce(check: RequestCheck) -> Amend | DeniedAnswer | None:
    """WRITE on each topic; a batch of a transaction needs WRITE on the transactional id, too.

    The batches decide, not the request (CVE-2018-17196). With acks=0 a denial closes the
    connection, and nothing of the request is appended.
    """
    body: ProduceRequest = check.body
    if any(
        is_transactional(partition)
        for topic in body.topic_data
        for partition in topic.partition_data
    ):
        if body.transactional_id is None:
            raise check.denial(_WRITE, _TRANSACTIONAL_ID, "")
        check.require(_WRITE, _TRANSACTIONAL_ID, body.transactional_id)
    return _topics(check)


def is_transactional(data: PartitionProduceData) -> bool:
    """Whether the first batch, which must be the only one, is of a transaction."""
    records = data.records
    if not isinstance(records, memoryview) or len(records) < HEADER_SIZE:
        return False
    attributes = int.from_bytes(records[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2])
    return bool(attributes & TRANSACTIONAL_FLAG)


def init_producer_id(check: RequestCheck) -> None:
    """A transactional id needs WRITE on it, an idempotent producer WRITE on any topic (KIP-679)."""
    body: InitProducerIdRequest = check.body
    if body.transactional_id is not None:
        check.require(_WRITE, _TRANSACTIONAL_ID, body.transactional_id)
    elif not check.access.allows_any(_WRITE, AclResource.TOPIC):
        check.require(AclOperation.IDEMPOTENT_WRITE, AclResource.CLUSTER, CLUSTER_NAME)


def add_partitions_to_txn(check: RequestCheck) -> DeniedAnswer | None:
    """WRITE on the transactional id and on every topic, or none is added.

    From version 4 on only brokers send it, and the handler refuses clients.
    """
    body: AddPartitionsToTxnRequest = check.body
    if check.version >= _BROKERS_FROM:
        return None
    check.require(_WRITE, _TRANSACTIONAL_ID, body.v3_and_below_transactional_id)
    codes = {
        topic.name: check.code(_WRITE, AclResource.TOPIC, topic.name)
        for topic in body.v3_and_below_topics
    }
    if not any(codes.values()):
        return None
    results: list[Any] = [
        AddPartitionsToTxnTopicResult(
            name=topic.name,
            results_by_partition=[
                AddPartitionsToTxnPartitionResult(
                    partition_index=index,
                    partition_error_code=codes[topic.name] or ErrorCode.OPERATION_NOT_ATTEMPTED,
                )
                for index in topic.partitions
            ],
        )
        for topic in body.v3_and_below_topics
    ]
    return DeniedAnswer(check.response(results_by_topic_v3_and_below=results))


def write_txn_markers(check: RequestCheck) -> None:
    """ALTER or CLUSTER_ACTION on the cluster: `kafka-transactions abort` sends it."""
    if not check.sees_cluster(AclOperation.ALTER):
        check.require_cluster(AclOperation.CLUSTER_ACTION)
