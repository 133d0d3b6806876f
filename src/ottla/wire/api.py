"""The table of APIs: key, versions, and (imported on first use) the message classes.

Versions are those of Apache Kafka 4.3 without the ones it calls unstable; of keys 4 to 7, which
4.0 removed, those of 3.9. A broker advertises only what it serves.
"""

from enum import IntEnum
from importlib import import_module
from typing import Final

from ottla.wire.field import HIGHEST_VERSION
from ottla.wire.notation import Message


class ApiKey(IntEnum):
    """The keys of the requests, by Kafka's names."""

    PRODUCE = 0
    FETCH = 1
    LIST_OFFSETS = 2
    METADATA = 3
    LEADER_AND_ISR = 4
    STOP_REPLICA = 5
    UPDATE_METADATA = 6
    CONTROLLED_SHUTDOWN = 7
    OFFSET_COMMIT = 8
    OFFSET_FETCH = 9
    FIND_COORDINATOR = 10
    JOIN_GROUP = 11
    HEARTBEAT = 12
    LEAVE_GROUP = 13
    SYNC_GROUP = 14
    DESCRIBE_GROUPS = 15
    LIST_GROUPS = 16
    SASL_HANDSHAKE = 17
    API_VERSIONS = 18
    CREATE_TOPICS = 19
    DELETE_TOPICS = 20
    DELETE_RECORDS = 21
    INIT_PRODUCER_ID = 22
    OFFSET_FOR_LEADER_EPOCH = 23
    ADD_PARTITIONS_TO_TXN = 24
    ADD_OFFSETS_TO_TXN = 25
    END_TXN = 26
    WRITE_TXN_MARKERS = 27
    TXN_OFFSET_COMMIT = 28
    DESCRIBE_ACLS = 29
    CREATE_ACLS = 30
    DELETE_ACLS = 31
    DESCRIBE_CONFIGS = 32
    ALTER_CONFIGS = 33
    ALTER_REPLICA_LOG_DIRS = 34
    DESCRIBE_LOG_DIRS = 35
    SASL_AUTHENTICATE = 36
    CREATE_PARTITIONS = 37
    CREATE_DELEGATION_TOKEN = 38
    RENEW_DELEGATION_TOKEN = 39
    EXPIRE_DELEGATION_TOKEN = 40
    DESCRIBE_DELEGATION_TOKEN = 41
    DELETE_GROUPS = 42
    ELECT_LEADERS = 43
    INCREMENTAL_ALTER_CONFIGS = 44
    ALTER_PARTITION_REASSIGNMENTS = 45
    LIST_PARTITION_REASSIGNMENTS = 46
    OFFSET_DELETE = 47
    DESCRIBE_CLIENT_QUOTAS = 48
    ALTER_CLIENT_QUOTAS = 49
    DESCRIBE_USER_SCRAM_CREDENTIALS = 50
    ALTER_USER_SCRAM_CREDENTIALS = 51
    UPDATE_FEATURES = 57
    DESCRIBE_CLUSTER = 60
    DESCRIBE_PRODUCERS = 61
    UNREGISTER_BROKER = 64
    DESCRIBE_TRANSACTIONS = 65
    LIST_TRANSACTIONS = 66
    CONSUMER_GROUP_HEARTBEAT = 68
    CONSUMER_GROUP_DESCRIBE = 69
    LIST_CONFIG_RESOURCES = 74
    DESCRIBE_TOPIC_PARTITIONS = 75
    SHARE_GROUP_HEARTBEAT = 76
    SHARE_GROUP_DESCRIBE = 77
    SHARE_FETCH = 78
    SHARE_ACKNOWLEDGE = 79
    INITIALIZE_SHARE_GROUP_STATE = 83
    READ_SHARE_GROUP_STATE = 84
    WRITE_SHARE_GROUP_STATE = 85
    DELETE_SHARE_GROUP_STATE = 86
    READ_SHARE_GROUP_STATE_SUMMARY = 87
    STREAMS_GROUP_HEARTBEAT = 88
    STREAMS_GROUP_DESCRIBE = 89
    DESCRIBE_SHARE_GROUP_OFFSETS = 90
    ALTER_SHARE_GROUP_OFFSETS = 91
    DELETE_SHARE_GROUP_OFFSETS = 92
    BROKER_HANDSHAKE = 1000
    DESCRIBE_DECISIONS = 1001
    LOG_ENDS = 1002
    COMPACT_LOG = 1003
    DESCRIBE_REBALANCES = 1004
    DESCRIBE_CLEANER = 1008
    OFFSET_LEDGER = 1012
    RETENTION_STANDING = 1013


class Api:
    """One API. `min_version` of Produce is 0, as Kafka advertises; its messages start at 3."""

    __slots__ = (
        "_request",
        "_response",
        "flexible_from",
        "key",
        "max_version",
        "min_version",
        "module",
        "name",
    )

    def __init__(self, key: ApiKey, min_version: int, max_version: int, flexible_from: int) -> None:
        self.key = key
        # Kafka's name ("ListOffsets") and the module that declares it ("list_offsets").
        self.module = key.name.lower()
        self.name = "".join(word.capitalize() for word in self.module.split("_"))
        self.min_version = min_version
        self.max_version = max_version
        self.flexible_from = flexible_from
        self._request: type[Message] | None = None
        self._response: type[Message] | None = None

    @property
    def request(self) -> type[Message]:
        """The class of requests."""
        if self._request is None:
            self._request = self._load("Request")
        return self._request

    @property
    def response(self) -> type[Message]:
        """The class of responses."""
        if self._response is None:
            self._response = self._load("Response")
        return self._response

    def _load(self, suffix: str) -> type[Message]:
        module = import_module(f"ottla.wire.messages.{self.module}")
        found: type[Message] = getattr(module, self.name + suffix)
        return found

    def __repr__(self) -> str:
        return f"Api({self.name}, {self.min_version}-{self.max_version})"


_NOT: Final = HIGHEST_VERSION + 1
_TABLE: Final = (
    Api(ApiKey.PRODUCE, 0, 13, 9),
    Api(ApiKey.FETCH, 4, 18, 12),
    Api(ApiKey.LIST_OFFSETS, 1, 11, 6),
    Api(ApiKey.METADATA, 0, 13, 9),
    Api(ApiKey.LEADER_AND_ISR, 0, 7, 4),
    Api(ApiKey.STOP_REPLICA, 0, 4, 2),
    Api(ApiKey.UPDATE_METADATA, 0, 8, 6),
    Api(ApiKey.CONTROLLED_SHUTDOWN, 0, 3, 3),
    Api(ApiKey.OFFSET_COMMIT, 2, 10, 8),
    Api(ApiKey.OFFSET_FETCH, 1, 10, 6),
    Api(ApiKey.FIND_COORDINATOR, 0, 6, 3),
    Api(ApiKey.JOIN_GROUP, 0, 9, 6),
    Api(ApiKey.HEARTBEAT, 0, 4, 4),
    Api(ApiKey.LEAVE_GROUP, 0, 5, 4),
    Api(ApiKey.SYNC_GROUP, 0, 5, 4),
    Api(ApiKey.DESCRIBE_GROUPS, 0, 6, 5),
    Api(ApiKey.LIST_GROUPS, 0, 5, 3),
    Api(ApiKey.SASL_HANDSHAKE, 0, 1, _NOT),
    Api(ApiKey.API_VERSIONS, 0, 4, 3),
    Api(ApiKey.CREATE_TOPICS, 2, 7, 5),
    Api(ApiKey.DELETE_TOPICS, 1, 6, 4),
    Api(ApiKey.DELETE_RECORDS, 0, 2, 2),
    Api(ApiKey.INIT_PRODUCER_ID, 0, 5, 2),
    Api(ApiKey.OFFSET_FOR_LEADER_EPOCH, 2, 4, 4),
    Api(ApiKey.ADD_PARTITIONS_TO_TXN, 0, 5, 3),
    Api(ApiKey.ADD_OFFSETS_TO_TXN, 0, 4, 3),
    Api(ApiKey.END_TXN, 0, 5, 3),
    Api(ApiKey.WRITE_TXN_MARKERS, 1, 2, 1),
    Api(ApiKey.TXN_OFFSET_COMMIT, 0, 5, 3),
    Api(ApiKey.DESCRIBE_ACLS, 1, 3, 2),
    Api(ApiKey.CREATE_ACLS, 1, 3, 2),
    Api(ApiKey.DELETE_ACLS, 1, 3, 2),
    Api(ApiKey.DESCRIBE_CONFIGS, 1, 4, 4),
    Api(ApiKey.ALTER_CONFIGS, 0, 2, 2),
    Api(ApiKey.ALTER_REPLICA_LOG_DIRS, 1, 2, 2),
    Api(ApiKey.DESCRIBE_LOG_DIRS, 1, 5, 2),
    Api(ApiKey.SASL_AUTHENTICATE, 0, 2, 2),
    Api(ApiKey.CREATE_PARTITIONS, 0, 3, 2),
    Api(ApiKey.CREATE_DELEGATION_TOKEN, 1, 3, 2),
    Api(ApiKey.RENEW_DELEGATION_TOKEN, 1, 2, 2),
    Api(ApiKey.EXPIRE_DELEGATION_TOKEN, 1, 2, 2),
    Api(ApiKey.DESCRIBE_DELEGATION_TOKEN, 1, 3, 2),
    Api(ApiKey.DELETE_GROUPS, 0, 2, 2),
    Api(ApiKey.ELECT_LEADERS, 0, 2, 2),
    Api(ApiKey.INCREMENTAL_ALTER_CONFIGS, 0, 1, 1),
    Api(ApiKey.ALTER_PARTITION_REASSIGNMENTS, 0, 1, 0),
    Api(ApiKey.LIST_PARTITION_REASSIGNMENTS, 0, 0, 0),
    Api(ApiKey.OFFSET_DELETE, 0, 0, _NOT),
    Api(ApiKey.DESCRIBE_CLIENT_QUOTAS, 0, 1, 1),
    Api(ApiKey.ALTER_CLIENT_QUOTAS, 0, 1, 1),
    Api(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, 0, 0),
    Api(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, 0, 0),
    Api(ApiKey.UPDATE_FEATURES, 0, 2, 0),
    Api(ApiKey.DESCRIBE_CLUSTER, 0, 2, 0),
    Api(ApiKey.DESCRIBE_PRODUCERS, 0, 0, 0),
    Api(ApiKey.UNREGISTER_BROKER, 0, 0, 0),
    Api(ApiKey.DESCRIBE_TRANSACTIONS, 0, 0, 0),
    Api(ApiKey.LIST_TRANSACTIONS, 0, 2, 0),
    Api(ApiKey.CONSUMER_GROUP_HEARTBEAT, 0, 1, 0),
    Api(ApiKey.CONSUMER_GROUP_DESCRIBE, 0, 1, 0),
    Api(ApiKey.LIST_CONFIG_RESOURCES, 0, 1, 0),
    Api(ApiKey.DESCRIBE_TOPIC_PARTITIONS, 0, 0, 0),
    Api(ApiKey.SHARE_GROUP_HEARTBEAT, 1, 1, 0),
    Api(ApiKey.SHARE_GROUP_DESCRIBE, 1, 1, 0),
    Api(ApiKey.SHARE_FETCH, 1, 2, 0),
    Api(ApiKey.SHARE_ACKNOWLEDGE, 1, 2, 0),
    Api(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, 0, 0),
    Api(ApiKey.READ_SHARE_GROUP_STATE, 0, 0, 0),
    Api(ApiKey.WRITE_SHARE_GROUP_STATE, 0, 1, 0),
    Api(ApiKey.DELETE_SHARE_GROUP_STATE, 0, 0, 0),
    Api(ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, 0, 1, 0),
    Api(ApiKey.STREAMS_GROUP_HEARTBEAT, 0, 0, 0),
    Api(ApiKey.STREAMS_GROUP_DESCRIBE, 0, 0, 0),
    Api(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, 0, 1, 0),
    Api(ApiKey.ALTER_SHARE_GROUP_OFFSETS, 0, 0, 0),
    Api(ApiKey.DELETE_SHARE_GROUP_OFFSETS, 0, 0, 0),
    Api(ApiKey.BROKER_HANDSHAKE, 0, 0, 0),
    Api(ApiKey.DESCRIBE_DECISIONS, 0, 0, 0),
    Api(ApiKey.LOG_ENDS, 0, 0, 0),
    Api(ApiKey.COMPACT_LOG, 0, 0, 0),
    Api(ApiKey.DESCRIBE_REBALANCES, 0, 0, 0),
    Api(ApiKey.DESCRIBE_CLEANER, 0, 0, 0),
    Api(ApiKey.OFFSET_LEDGER, 0, 0, 0),
    Api(ApiKey.RETENTION_STANDING, 0, 0, 0),
)
API: Final[dict[ApiKey, Api]] = {api.key: api for api in _TABLE}
# First version with compact types and tagged fields, by key.
FLEXIBLE_FROM: Final[dict[int, int]] = {int(api.key): api.flexible_from for api in _TABLE}

# Keys of Ottla's own APIs, and tags of its own fields, begin beyond those that Kafka may use.
FIRST_PRIVATE_KEY: Final = 1000
FIRST_PRIVATE_TAG: Final = 10000
# About the state of share groups, between the leaders of partitions and its coordinators.
SHARE_STATE_APIS: Final = frozenset(
    {
        ApiKey.INITIALIZE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE,
        ApiKey.WRITE_SHARE_GROUP_STATE,
        ApiKey.DELETE_SHARE_GROUP_STATE,
        ApiKey.READ_SHARE_GROUP_STATE_SUMMARY,
    }
)
# Between brokers only: never advertised, and refused from connections that are not proven brokers.
BROKER_APIS: Final = SHARE_STATE_APIS | frozenset(
    {
        ApiKey.LEADER_AND_ISR,
        ApiKey.STOP_REPLICA,
        ApiKey.UPDATE_METADATA,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.BROKER_HANDSHAKE,
        ApiKey.LOG_ENDS,
    }
)
