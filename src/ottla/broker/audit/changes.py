"""Which APIs change something, and how their lines are made of request and response.

A new API that changes something gets a function here; a test lists those that change nothing.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from ottla.broker.audit import of_cluster, of_groups, of_tokens, of_topics
from ottla.broker.requests.auditing import AdminChange
from ottla.wire.api import ApiKey

# Request and response belong to their API, hence Any. The request has what was allowed of it.
Describe = Callable[[Any, Any], Iterator[AdminChange]]

CHANGES: Mapping[int, Describe] = {
    # Topics.
    ApiKey.CREATE_TOPICS: of_topics.create_topics,
    ApiKey.DELETE_TOPICS: of_topics.delete_topics,
    ApiKey.CREATE_PARTITIONS: of_topics.create_partitions,
    ApiKey.DELETE_RECORDS: of_topics.delete_records,
    ApiKey.ALTER_CONFIGS: of_topics.alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: of_topics.alter_configs,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: of_topics.alter_reassignments,
    ApiKey.ELECT_LEADERS: of_topics.elect_leaders,
    ApiKey.ALTER_REPLICA_LOG_DIRS: of_topics.alter_log_dirs,
    ApiKey.COMPACT_LOG: of_topics.compact_log,
    # Groups and transactions.
    ApiKey.DELETE_GROUPS: of_groups.delete_groups,
    ApiKey.OFFSET_COMMIT: of_groups.commit_offsets,
    ApiKey.OFFSET_DELETE: of_groups.delete_offsets,
    ApiKey.ALTER_SHARE_GROUP_OFFSETS: of_groups.alter_share_offsets,
    ApiKey.DELETE_SHARE_GROUP_OFFSETS: of_groups.delete_share_offsets,
    ApiKey.WRITE_TXN_MARKERS: of_groups.write_markers,
    # The cluster.
    ApiKey.CREATE_ACLS: of_cluster.create_acls,
    ApiKey.DELETE_ACLS: of_cluster.delete_acls,
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: of_cluster.alter_users,
    ApiKey.CREATE_DELEGATION_TOKEN: of_tokens.create_token,
    ApiKey.RENEW_DELEGATION_TOKEN: of_tokens.renew_token,
    ApiKey.EXPIRE_DELEGATION_TOKEN: of_tokens.expire_token,
    ApiKey.ALTER_CLIENT_QUOTAS: of_cluster.alter_quotas,
    ApiKey.UPDATE_FEATURES: of_cluster.update_features,
    ApiKey.UNREGISTER_BROKER: of_cluster.unregister_broker,
}
