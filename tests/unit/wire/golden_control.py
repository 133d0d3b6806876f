"""Other APIs, with the bytes that Kafka's Java client 4.3.1 gives for them."""

from uuid import UUID

from ottla.wire import stored
from ottla.wire.messages import (
    api_versions,
    classic_membership,
    client_quotas,
    consumer_groups,
    group_offsets,
    metadata,
    topics,
)
from ottla.wire.notation import Message

ID = UUID("01020304-0506-0708-090a-0b0c0d0e0f10")
BROKERS = [metadata.MetadataResponseBroker(node_id=1, host="localhost", port=9092, rack="r")]

GOLDEN_CONTROL: list[tuple[int, Message, str]] = [
    (4, metadata.MetadataRequest(topics=None, allow_auto_topic_creation=False), "ffffffff00"),
    (
        12,
        metadata.MetadataRequest(
            topics=[metadata.MetadataRequestTopic(topic_id=ID, name=None)],
            include_topic_authorized_operations=True,
        ),
        "020102030405060708090a0b0c0d0e0f100000010100",
    ),
    (
        1,
        metadata.MetadataResponse(
            controller_id=1,
            brokers=BROKERS,
            topics=[
                metadata.MetadataResponseTopic(
                    name="flights",
                    partitions=[
                        metadata.MetadataResponsePartition(
                            leader_id=1, replica_nodes=[1, 2], isr_nodes=[1]
                        )
                    ],
                )
            ],
        ),
        "000000010000000100096c6f63616c686f737400002384000172000000010000000100000007666c69676874"
        "730000000001000000000000000000010000000200000001000000020000000100000001",
    ),
    (
        12,
        metadata.MetadataResponse(
            controller_id=1,
            cluster_id="cluster",
            brokers=BROKERS,
            topics=[
                metadata.MetadataResponseTopic(
                    name="flights",
                    topic_id=ID,
                    partitions=[
                        metadata.MetadataResponsePartition(
                            leader_id=1,
                            leader_epoch=3,
                            replica_nodes=[1, 2],
                            isr_nodes=[1],
                            offline_replicas=[2],
                        )
                    ],
                )
            ],
        ),
        "0000000002000000010a6c6f63616c686f73740000238402720008636c75737465720000000102000008666c"
        "69676874730102030405060708090a0b0c0d0e0f100002000000000000000000010000000303000000010000"
        "00020200000001020000000200800000000000",
    ),
    (
        3,
        api_versions.ApiVersionsResponse(
            error_code=35,
            throttle_time_ms=2,
            finalized_features_epoch=12,
            api_keys=[api_versions.ApiVersion(api_key=1, min_version=4, max_version=17)],
            supported_features=[
                api_versions.SupportedFeatureKey(name="transaction.version", max_version=2)
            ],
        ),
        "002302000100040011000000000202001a02147472616e73616374696f6e2e76657273696f6e000000020001"
        "08000000000000000c",
    ),
    (
        9,
        classic_membership.JoinGroupRequest(
            group_id="g",
            session_timeout_ms=10000,
            rebalance_timeout_ms=30000,
            protocol_type="consumer",
            reason="joining",
            protocols=[
                classic_membership.JoinGroupRequestProtocol(name="range", metadata=bytes([0, 3, 1]))
            ],
        ),
        "02670000271000007530010009636f6e73756d6572020672616e67650400030100086a6f696e696e6700",
    ),
    (
        8,
        group_offsets.OffsetFetchResponse(
            groups=[
                group_offsets.OffsetFetchResponseGroup(
                    group_id="g",
                    topics=[
                        group_offsets.OffsetFetchResponseTopic(
                            name="t",
                            partitions=[
                                group_offsets.OffsetFetchResponsePartition(
                                    committed_offset=17, metadata="m"
                                )
                            ],
                        )
                    ],
                )
            ]
        ),
        "0000000002026702027402000000000000000000000011ffffffff026d0000000000000000",
    ),
    (
        1,
        consumer_groups.ConsumerGroupHeartbeatResponse(
            member_id="m", member_epoch=5, heartbeat_interval_ms=5000
        ),
        "00000000000000026d0000000500001388ff00",
    ),
    (
        1,
        consumer_groups.ConsumerGroupHeartbeatResponse(
            member_id="m",
            member_epoch=5,
            heartbeat_interval_ms=5000,
            assignment=consumer_groups.Assignment(
                topic_partitions=[consumer_groups.TopicPartitions(topic_id=ID, partitions=[0, 1])]
            ),
        ),
        "00000000000000026d000000050000138801020102030405060708090a0b0c0d0e0f10030000000000000001"
        "000000",
    ),
    (
        1,
        client_quotas.DescribeClientQuotasResponse(
            error_message="",
            entries=[
                client_quotas.DescribedEntryData(
                    entity=[client_quotas.EntityData(entity_type="user")],
                    values=[client_quotas.ValueData(key="producer_byte_rate", value=1048576.5)],
                )
            ],
        ),
        "00000000000001020205757365720000021370726f64756365725f627974655f726174654130000080000000"
        "000000",
    ),
    (
        7,
        topics.CreateTopicsRequest(
            timeout_ms=60000,
            validate_only=True,
            topics=[
                topics.CreatableTopic(
                    name="x" * 200,
                    num_partitions=-1,
                    replication_factor=-1,
                    configs=[topics.CreatableTopicConfig(name="cleanup.policy", value="compact")],
                )
            ],
        ),
        "02c9017878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "7878787878787878787878787878787878787878787878787878787878787878787878787878787878787878"
        "787878787878787878787878787878787878787878787878787878ffffffffffff01020f636c65616e75702e"
        "706f6c69637908636f6d7061637400000000ea600100",
    ),
    (
        3,
        stored.ConsumerProtocolSubscription(
            topics=["a", "b"],
            generation_id=4,
            rack_id="r",
            owned_partitions=[stored.SubscriptionTopicPartition(topic="a", partitions=[0])],
        ),
        "00000002000161000162ffffffff00000001000161000000010000000000000004000172",
    ),
]
