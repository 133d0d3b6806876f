"""Requests of transactions, one by one, as no client library would send them."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rig.nodes import Node
from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.record.builder import BatchBuilder
from ottla.wire.messages.find_coordinator import FindCoordinatorRequest
from ottla.wire.messages.group_offsets import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.wire.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.wire.messages.transactions import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    EndTxnRequest,
    InitProducerIdRequest,
)

PATIENCE_S = 120
# Passing: the broker asks for a moment.
_LATER = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
)


class Who(NamedTuple):
    """A producer id and an epoch of it."""

    producer_id: int
    epoch: int


class Calls:
    """Each call gives the name of the error, asking again where it is told to come later."""

    def __init__(self, client: WireClient, transactional_id: str, topic: str) -> None:
        self._client = client
        self.name = transactional_id
        self.topic = topic

    def find(self, group: str | None = None) -> None:
        """Look for the coordinator, which makes its topic."""
        request = FindCoordinatorRequest(key=group or self.name, key_type=0 if group else 1)
        self._persist(lambda: self._client.call(request, 3).error_code)

    def initialize(
        self, timeout_ms: int = 60_000, who: Who | None = None, version: int = 4
    ) -> tuple[str, Who]:
        """InitProducerId: the error, and what the producer has now."""
        request = InitProducerIdRequest(
            transactional_id=self.name,
            transaction_timeout_ms=timeout_ms,
            producer_id=who.producer_id if who else -1,
            producer_epoch=who.epoch if who else -1,
        )
        found = [Who(-1, -1)]

        def ask() -> int:
            answer = self._client.call(request, version)
            found[0] = Who(answer.producer_id, answer.producer_epoch)
            return int(answer.error_code)

        return self._persist(ask), found[0]

    def begin(self) -> Who:
        """A producer of the transactional id; those before are fenced."""
        self.find()
        error, who = self.initialize()
        assert error == "NONE"
        return who

    def add(self, who: Who, version: int = 3, topic: str | None = None, partition: int = 0) -> str:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.name,
            v3_and_below_producer_id=who.producer_id,
            v3_and_below_producer_epoch=who.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(name=topic or self.topic, partitions=[partition])
            ],
        )

        def ask() -> int:
            (answer,) = self._client.call(request, version).results_by_topic_v3_and_below
            return int(answer.results_by_partition[0].partition_error_code)

        return self._persist(ask)

    def add_offsets(self, who: Who, group: str, version: int = 3) -> str:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.name,
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            group_id=group,
        )
        return self._persist(lambda: self._client.call(request, version).error_code)

    def commit_offset(
        self,
        who: Who,
        group: str,
        version: int = 3,
        generation: int = -1,
        member: str = "",
        topic: str | None = None,
    ) -> str:
        partition = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=1)
        request = TxnOffsetCommitRequest(
            transactional_id=self.name,
            group_id=group,
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            generation_id=generation,
            member_id=member,
            topics=[TxnOffsetCommitRequestTopic(name=topic or self.topic, partitions=[partition])],
        )

        def ask() -> int:
            (answer,) = self._client.call(request, version).topics
            return int(answer.partitions[0].error_code)

        return self._persist(ask)

    def produce(
        self,
        who: Who,
        sequence: int,
        version: int = 9,
        *,
        transactional: bool = True,
        named: bool = True,
    ) -> str:
        """One record; `transactional` as its batch says, `named` whether the request does."""
        builder = BatchBuilder(
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            base_sequence=sequence,
            transactional=transactional,
        )
        builder.append(int(time.time() * 1000), None, b"value")
        data = PartitionProduceData(index=0, records=builder.build())
        request = ProduceRequest(
            transactional_id=self.name if named else None,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[TopicProduceData(name=self.topic, partition_data=[data])],
        )

        def ask() -> int:
            (answer,) = self._client.call(request, version).responses
            return int(answer.partition_responses[0].error_code)

        return self._persist(ask)

    def end(self, who: Who, version: int = 3, *, commits: bool = True) -> tuple[str, Who]:
        """EndTxn: the error, and what the producer goes on with, as version 5 tells it."""
        request = EndTxnRequest(
            transactional_id=self.name,
            producer_id=who.producer_id,
            producer_epoch=who.epoch,
            committed=commits,
        )
        found = [who]

        def ask() -> int:
            answer = self._client.call(request, version)
            if version >= 5:
                found[0] = Who(answer.producer_id, answer.producer_epoch)
            return int(answer.error_code)

        return self._persist(ask), found[0]

    def _persist(self, ask: Callable[[], int]) -> str:
        deadline_s = time.monotonic() + PATIENCE_S
        while (code := ErrorCode(ask())) in _LATER:
            assert time.monotonic() < deadline_s, f"{code.name} for ever"
            time.sleep(0.05)
        return code.name


@contextmanager
def calls(node: Node, transactional_id: str, topic: str) -> Iterator[Calls]:
    """A connection of its own."""
    with WireClient(node.port) as client:
        yield Calls(client, transactional_id, topic)
