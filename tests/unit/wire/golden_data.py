"""Produce and Fetch, with the bytes that Kafka's Java client 4.3.1 gives for them."""

from uuid import UUID

from ottla.wire.messages import fetch, produce
from ottla.wire.notation import Message

ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
PRODUCED = [
    produce.PartitionProduceData(index=2, records=memoryview(bytes([1, 2, 3, 4, 5]))),
    produce.PartitionProduceData(index=3, records=None),
]
ABORTED = [fetch.AbortedTransaction(producer_id=42, first_offset=1001)]

GOLDEN_DATA: list[tuple[int, Message, str]] = [
    (
        3,
        produce.ProduceRequest(
            acks=-1,
            timeout_ms=1500,
            topic_data=[produce.TopicProduceData(name="flights", partition_data=PRODUCED)],
        ),
        "ffffffff000005dc000000010007666c6967687473000000020000000200000005010203040500000003ffff"
        "ffff",
    ),
    (
        9,
        produce.ProduceRequest(
            transactional_id="tx",
            acks=-1,
            timeout_ms=1500,
            topic_data=[produce.TopicProduceData(name="flights", partition_data=PRODUCED)],
        ),
        "037478ffff000005dc0208666c69676874730300000002060102030405000000000300000000",
    ),
    (
        13,
        produce.ProduceRequest(
            transactional_id="tx",
            acks=-1,
            timeout_ms=1500,
            topic_data=[produce.TopicProduceData(topic_id=ID, partition_data=PRODUCED)],
        ),
        "037478ffff000005dc020102030405060708090a0b0c0d0e0f10030000000206010203040500000000030000"
        "0000",
    ),
    (
        3,
        produce.ProduceResponse(
            throttle_time_ms=5,
            responses=[
                produce.TopicProduceResponse(
                    name="flights",
                    partition_responses=[
                        produce.PartitionProduceResponse(
                            index=2, error_code=6, base_offset=123456789012
                        )
                    ],
                )
            ],
        ),
        "000000010007666c6967687473000000010000000200060000001cbe991a14ffffffffffffffff00000005",
    ),
    (
        8,
        produce.ProduceResponse(
            throttle_time_ms=5,
            responses=[
                produce.TopicProduceResponse(
                    name="flights",
                    partition_responses=[
                        produce.PartitionProduceResponse(
                            index=2,
                            error_code=6,
                            base_offset=123456789012,
                            log_start_offset=7,
                            error_message="moved",
                            record_errors=[produce.BatchIndexAndErrorMessage(batch_index=1)],
                        )
                    ],
                )
            ],
        ),
        "000000010007666c6967687473000000010000000200060000001cbe991a14ffffffffffffffff0000000000"
        "0000070000000100000001ffff00056d6f76656400000005",
    ),
    (
        11,
        produce.ProduceResponse(
            throttle_time_ms=5,
            responses=[
                produce.TopicProduceResponse(
                    name="flights",
                    partition_responses=[
                        produce.PartitionProduceResponse(
                            index=2,
                            error_code=6,
                            base_offset=123456789012,
                            log_start_offset=7,
                            error_message="moved",
                            record_errors=[produce.BatchIndexAndErrorMessage(batch_index=1)],
                            current_leader=produce.LeaderIdAndEpoch(leader_id=3, leader_epoch=9),
                        )
                    ],
                )
            ],
            node_endpoints=[produce.NodeEndpoint(node_id=3, host="h3", port=9092)],
        ),
        "0208666c6967687473020000000200060000001cbe991a14ffffffffffffffff000000000000000702000000"
        "010000066d6f766564010009000000030000000900000000000501000e0200000003036833000023840000",
    ),
    (
        4,
        fetch.FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=1,
            topics=[
                fetch.FetchTopic(
                    topic="flights",
                    partitions=[
                        fetch.FetchPartition(
                            partition=6, fetch_offset=1000, partition_max_bytes=65536
                        )
                    ],
                )
            ],
        ),
        "ffffffff000001f4000000010010000001000000010007666c69676874730000000100000006000000000000"
        "03e800010000",
    ),
    (
        11,
        fetch.FetchRequest(
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=1,
            session_id=11,
            session_epoch=2,
            rack_id="r1",
            topics=[
                fetch.FetchTopic(
                    topic="flights",
                    partitions=[
                        fetch.FetchPartition(
                            partition=6,
                            current_leader_epoch=5,
                            fetch_offset=1000,
                            partition_max_bytes=65536,
                        )
                    ],
                )
            ],
            forgotten_topics_data=[fetch.ForgottenTopic(topic="old", partitions=[1, 2])],
        ),
        "ffffffff000001f40000000100100000010000000b00000002000000010007666c6967687473000000010000"
        "00060000000500000000000003e8ffffffffffffffff000100000000000100036f6c64000000020000000100"
        "00000200027231",
    ),
    (
        17,
        fetch.FetchRequest(
            cluster_id="c1",
            replica_state=fetch.ReplicaState(replica_id=4, replica_epoch=8),
            max_wait_ms=500,
            min_bytes=1,
            max_bytes=1 << 20,
            isolation_level=1,
            session_id=11,
            session_epoch=2,
            rack_id="r1",
            topics=[
                fetch.FetchTopic(
                    topic_id=ID,
                    partitions=[
                        fetch.FetchPartition(
                            partition=6,
                            current_leader_epoch=5,
                            fetch_offset=1000,
                            last_fetched_epoch=4,
                            partition_max_bytes=65536,
                            replica_directory_id=ID,
                        )
                    ],
                )
            ],
            forgotten_topics_data=[fetch.ForgottenTopic(topic_id=ID, partitions=[1, 2])],
        ),
        "000001f40000000100100000010000000b00000002020102030405060708090a0b0c0d0e0f10020000000600"
        "00000500000000000003e800000004ffffffffffffffff000100000100100102030405060708090a0b0c0d0e"
        "0f1000020102030405060708090a0b0c0d0e0f1003000000010000000200037231020003036331010d000000"
        "04000000000000000800",
    ),
    (
        4,
        fetch.FetchResponse(
            throttle_time_ms=1,
            responses=[
                fetch.FetchableTopicResponse(
                    topic="flights",
                    partitions=[
                        fetch.PartitionData(
                            partition_index=6,
                            high_watermark=2000,
                            last_stable_offset=1999,
                            aborted_transactions=ABORTED,
                            records=memoryview(bytes([9, 8, 7])),
                        )
                    ],
                )
            ],
        ),
        "00000001000000010007666c69676874730000000100000006000000000000000007d000000000000007cf00"
        "000001000000000000002a00000000000003e900000003090807",
    ),
    (
        11,
        fetch.FetchResponse(
            throttle_time_ms=1,
            session_id=11,
            responses=[
                fetch.FetchableTopicResponse(
                    topic="flights",
                    partitions=[
                        fetch.PartitionData(
                            partition_index=6,
                            high_watermark=2000,
                            last_stable_offset=1999,
                            log_start_offset=3,
                            preferred_read_replica=2,
                            aborted_transactions=ABORTED,
                            records=memoryview(bytes([9, 8, 7])),
                        )
                    ],
                )
            ],
        ),
        "0000000100000000000b000000010007666c69676874730000000100000006000000000000000007d0000000"
        "00000007cf000000000000000300000001000000000000002a00000000000003e90000000200000003090807",
    ),
    (
        16,
        fetch.FetchResponse(
            throttle_time_ms=1,
            session_id=11,
            responses=[
                fetch.FetchableTopicResponse(
                    topic_id=ID,
                    partitions=[
                        fetch.PartitionData(
                            partition_index=6,
                            high_watermark=2000,
                            last_stable_offset=1999,
                            log_start_offset=3,
                            preferred_read_replica=2,
                            diverging_epoch=fetch.EpochEndOffset(epoch=4, end_offset=900),
                            aborted_transactions=ABORTED,
                            records=memoryview(bytes([9, 8, 7])),
                        )
                    ],
                )
            ],
        ),
        "0000000100000000000b020102030405060708090a0b0c0d0e0f100200000006000000000000000007d00000"
        "0000000007cf000000000000000302000000000000002a00000000000003e900000000020409080701000d00"
        "0000040000000000000384000000",
    ),
]
