"""What each API needs, as Kafka's documentation says under "Authorization".

A test holds that every API that clients may call stands here: one that is missing is refused.
"""

from collections.abc import Mapping

from ottla.base.errors import ErrorCode
from ottla.base.settings import BrokerSettings
from ottla.broker.access import groups, producing, seeing, sharing, tokens, topics
from ottla.broker.access.guards import (
    Guard,
    both,
    cluster,
    each,
    free,
    named,
    shown,
    text,
    topic,
    topic_or_id,
)
from ottla.broker.access.offsets import offset_fetch
from ottla.security.names import AclOperation, AclResource
from ottla.wire.api import ApiKey
from ottla.wire.messages.offset_delete import (
    OffsetDeleteRequestTopic,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)

_GROUP, _TOPIC, _TRANSACTIONAL_ID = (
    AclResource.GROUP,
    AclResource.TOPIC,
    AclResource.TRANSACTIONAL_ID,
)
_READ, _WRITE, _CREATE, _DELETE, _ALTER, _DESCRIBE, _DESCRIBE_CONFIGS, _ALTER_CONFIGS = (
    AclOperation.READ,
    AclOperation.WRITE,
    AclOperation.CREATE,
    AclOperation.DELETE,
    AclOperation.ALTER,
    AclOperation.DESCRIBE,
    AclOperation.DESCRIBE_CONFIGS,
    AclOperation.ALTER_CONFIGS,
)


def _offset_delete_refused(
    asked: OffsetDeleteRequestTopic, code: ErrorCode
) -> OffsetDeleteResponseTopic:
    return OffsetDeleteResponseTopic(
        name=asked.name,
        partitions=[
            OffsetDeleteResponsePartition(
                partition_index=partition.partition_index, error_code=code
            )
            for partition in asked.partitions
        ],
    )


def guards(settings: BrokerSettings) -> Mapping[int, Guard]:
    """The guard of each API, by its key. APIs between brokers only are not among them."""
    reads_group = named(_READ, _GROUP, "group_id")
    writes_transaction = named(_WRITE, _TRANSACTIONAL_ID, "transactional_id")
    return {
        # Records. Fetch checks READ on each topic itself: its sessions remember partitions.
        ApiKey.PRODUCE: producing.produce,
        ApiKey.FETCH: free,
        ApiKey.LIST_OFFSETS: each("topics", "topics", topic(_DESCRIBE)),
        ApiKey.OFFSET_FOR_LEADER_EPOCH: each("topics", "topics", topics.offset_for_leader_epoch),
        ApiKey.DELETE_RECORDS: each("topics", "topics", topic(_DELETE)),
        # Metadata.
        ApiKey.METADATA: seeing.metadata(settings),
        ApiKey.DESCRIBE_TOPIC_PARTITIONS: seeing.describe_topic_partitions,
        ApiKey.DESCRIBE_CLUSTER: seeing.describe_cluster,
        # Topics and settings.
        ApiKey.CREATE_TOPICS: topics.create_topics,
        ApiKey.DELETE_TOPICS: topics.delete_topics,
        ApiKey.CREATE_PARTITIONS: each("topics", "results", topic(_ALTER)),
        ApiKey.DESCRIBE_CONFIGS: each("resources", "results", topics.configs(_DESCRIBE_CONFIGS)),
        ApiKey.ALTER_CONFIGS: each("resources", "responses", topics.configs(_ALTER_CONFIGS)),
        ApiKey.INCREMENTAL_ALTER_CONFIGS: each(
            "resources", "responses", topics.configs(_ALTER_CONFIGS)
        ),
        ApiKey.LIST_CONFIG_RESOURCES: cluster(_DESCRIBE_CONFIGS),
        # Groups.
        ApiKey.FIND_COORDINATOR: groups.find_coordinator,
        ApiKey.JOIN_GROUP: reads_group,
        ApiKey.SYNC_GROUP: reads_group,
        ApiKey.HEARTBEAT: reads_group,
        ApiKey.LEAVE_GROUP: reads_group,
        ApiKey.CONSUMER_GROUP_HEARTBEAT: groups.subscribes,
        ApiKey.LIST_GROUPS: groups.list_groups,
        ApiKey.DESCRIBE_GROUPS: groups.describe_groups("groups"),
        ApiKey.CONSUMER_GROUP_DESCRIBE: groups.describe_groups("group_ids", groups.of_consumer),
        ApiKey.DELETE_GROUPS: each("groups_names", "results", text(_DELETE, _GROUP)),
        ApiKey.OFFSET_COMMIT: both(reads_group, each("topics", "topics", topic_or_id(_READ))),
        ApiKey.OFFSET_FETCH: offset_fetch,
        ApiKey.OFFSET_DELETE: both(
            named(_DELETE, _GROUP, "group_id"),
            each("topics", "topics", topic(_READ), _offset_delete_refused),
        ),
        # Producers and transactions.
        ApiKey.INIT_PRODUCER_ID: producing.init_producer_id,
        ApiKey.ADD_PARTITIONS_TO_TXN: producing.add_partitions_to_txn,
        ApiKey.ADD_OFFSETS_TO_TXN: both(writes_transaction, reads_group),
        ApiKey.END_TXN: writes_transaction,
        ApiKey.TXN_OFFSET_COMMIT: both(
            writes_transaction, both(reads_group, each("topics", "topics", topic(_READ)))
        ),
        ApiKey.WRITE_TXN_MARKERS: producing.write_txn_markers,
        ApiKey.DESCRIBE_PRODUCERS: each("topics", "topics", topic(_READ)),
        ApiKey.DESCRIBE_TRANSACTIONS: groups.describe_transactions,
        ApiKey.LIST_TRANSACTIONS: shown(
            "transaction_states", "transactional_id", _DESCRIBE, _TRANSACTIONAL_ID
        ),
        # Share groups.
        ApiKey.SHARE_GROUP_HEARTBEAT: groups.subscribes,
        ApiKey.SHARE_GROUP_DESCRIBE: groups.describe_groups("group_ids", groups.of_sharer),
        ApiKey.SHARE_FETCH: sharing.share_fetch,
        ApiKey.SHARE_ACKNOWLEDGE: sharing.share_acknowledge,
        ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS: sharing.describe_share_group_offsets,
        ApiKey.ALTER_SHARE_GROUP_OFFSETS: both(
            reads_group,
            each(
                "topics",
                "responses",
                topic(_READ, "topic_name"),
                sharing.refuse_alter,
                always_served=True,
            ),
        ),
        ApiKey.DELETE_SHARE_GROUP_OFFSETS: both(
            named(_DELETE, _GROUP, "group_id"),
            each(
                "topics",
                "responses",
                topic(_READ, "topic_name"),
                sharing.refuse_delete,
                always_served=True,
            ),
        ),
        # The cluster.
        ApiKey.ALTER_PARTITION_REASSIGNMENTS: cluster(_ALTER),
        ApiKey.LIST_PARTITION_REASSIGNMENTS: cluster(_DESCRIBE),
        ApiKey.ELECT_LEADERS: cluster(_ALTER),
        ApiKey.ALTER_REPLICA_LOG_DIRS: cluster(_ALTER),
        ApiKey.DESCRIBE_LOG_DIRS: cluster(_DESCRIBE),
        ApiKey.DESCRIBE_CLIENT_QUOTAS: cluster(_DESCRIBE_CONFIGS),
        ApiKey.ALTER_CLIENT_QUOTAS: cluster(_ALTER_CONFIGS),
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: cluster(_DESCRIBE),
        ApiKey.ALTER_USER_SCRAM_CREDENTIALS: cluster(_ALTER),
        # Delegation tokens: owners and renewers are known to the handlers only.
        ApiKey.CREATE_DELEGATION_TOKEN: tokens.create,
        ApiKey.RENEW_DELEGATION_TOKEN: free,
        ApiKey.EXPIRE_DELEGATION_TOKEN: free,
        ApiKey.DESCRIBE_DELEGATION_TOKEN: tokens.describe,
        ApiKey.UPDATE_FEATURES: cluster(_ALTER),
        ApiKey.UNREGISTER_BROKER: cluster(_ALTER),
        ApiKey.CREATE_ACLS: cluster(_ALTER),
        ApiKey.DELETE_ACLS: cluster(_ALTER),
        ApiKey.DESCRIBE_ACLS: cluster(_DESCRIBE),
        # Ottla's own.
        ApiKey.COMPACT_LOG: named(_ALTER, _TOPIC, "topic"),
        ApiKey.DESCRIBE_CLEANER: cluster(_DESCRIBE),
        ApiKey.DESCRIBE_DECISIONS: named(_DESCRIBE, _TOPIC, "topic"),
        ApiKey.DESCRIBE_REBALANCES: named(_DESCRIBE, _GROUP, "group_id"),
        ApiKey.OFFSET_LEDGER: named(_DESCRIBE, _TOPIC, "topic"),
        ApiKey.RETENTION_STANDING: topics.retention_standing,
        # Before a client or broker is authenticated.
        ApiKey.API_VERSIONS: free,
        ApiKey.SASL_HANDSHAKE: free,
        ApiKey.SASL_AUTHENTICATE: free,
        ApiKey.BROKER_HANDSHAKE: free,
    }
