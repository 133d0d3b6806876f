"""A log of one partition that a `ScriptedBroker` answers fetches from."""

from dataclasses import dataclass, field

from ottla.record.builder import build_batch
from ottla.wire.api import ApiKey
from ottla.wire.messages.fetch import (
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ottla.wire.messages.list_offsets import (
    EpochEndOffset,
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderTopicResult,
)
from ottla.wire.messages.metadata import (
    MetadataRequest,
    MetadataResponse,
    MetadataResponseBroker,
    MetadataResponsePartition,
    MetadataResponseTopic,
)
from tests.integration.client.scripted import ScriptedBroker


def batch(base_offset: int, *values: bytes, leader_epoch: int = 0) -> bytes:
    """A batch as a leader keeps it: one record per value."""
    made = build_batch([0] * len(values), None, list(values), base_offset=base_offset)
    made[12:16] = leader_epoch.to_bytes(4, "big")
    return bytes(made)


@dataclass
class ScriptedLog:
    """`answers` has what a fetch from an offset brings; from any other it brings nothing."""

    answers: dict[int, bytes]
    end: int
    leader_epoch: int = 0
    # Where each older leader epoch ends.
    epoch_ends: dict[int, int] = field(default_factory=dict)
    asked_epochs: list[int] = field(default_factory=list)
    fetched_offsets: list[int] = field(default_factory=list)

    def serve(self) -> ScriptedBroker:
        """A broker that leads this log."""
        self.broker = ScriptedBroker(
            others={
                ApiKey.METADATA: self._metadata,
                ApiKey.FETCH: self._fetch,
                ApiKey.OFFSET_FOR_LEADER_EPOCH: self._epoch_end,
            }
        )
        return self.broker

    def answer(self, offset: int) -> bytes:
        """The batches that a fetch from `offset` gets."""
        return self.answers.get(offset, b"")

    def _metadata(self, request: MetadataRequest) -> MetadataResponse:
        partition = MetadataResponsePartition(
            partition_index=0,
            leader_id=1,
            leader_epoch=self.leader_epoch,
            replica_nodes=[1],
            isr_nodes=[1],
        )
        return MetadataResponse(
            cluster_id="scripted",
            controller_id=1,
            brokers=[MetadataResponseBroker(node_id=1, host="127.0.0.1", port=self.broker.port)],
            topics=[
                MetadataResponseTopic(name=topic.name, partitions=[partition])
                for topic in request.topics or []
            ],
        )

    def _fetch(self, request: FetchRequest) -> FetchResponse:
        (topic,) = request.topics
        (asked,) = topic.partitions
        self.fetched_offsets.append(asked.fetch_offset)
        data = PartitionData(
            partition_index=0,
            high_watermark=self.end,
            last_stable_offset=self.end,
            log_start_offset=0,
            records=self.answer(asked.fetch_offset),
        )
        return FetchResponse(
            responses=[FetchableTopicResponse(topic=topic.topic, partitions=[data])]
        )

    def _epoch_end(self, request: OffsetForLeaderEpochRequest) -> OffsetForLeaderEpochResponse:
        (topic,) = request.topics
        (asked,) = topic.partitions
        self.asked_epochs.append(asked.leader_epoch)
        known = asked.leader_epoch in self.epoch_ends
        end = EpochEndOffset(
            partition=0,
            leader_epoch=asked.leader_epoch if known else -1,
            end_offset=self.epoch_ends.get(asked.leader_epoch, -1),
        )
        return OffsetForLeaderEpochResponse(
            topics=[OffsetForLeaderTopicResult(topic=topic.topic, partitions=[end])]
        )
