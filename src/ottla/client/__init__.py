"""Producer, consumer and administration for any Kafka-protocol broker. Uses wire and record only.

`Producer`, `Consumer` and `Admin` are for asyncio; `ottla.client.sync` has them as plain calls;
`ottla.client.ranges` reads a range of offsets as raw batches over a blocking socket. Every
error is an `OttlaError` with one of Kafka's `ErrorCode`s and a sentence that names cause and
remedy.
"""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin, AdminOptions
from ottla.client.admin.clients import (
    ClientDelays,
    ClientFailure,
    ClientUsage,
    ClientUse,
    DelayReason,
    SlowRequest,
)
from ottla.client.admin.cluster import ClusterDescription
from ottla.client.admin.compaction import (
    CleanerStatus,
    CleaningPass,
    CompactAction,
    CompactionStatus,
    FailedCleaning,
)
from ottla.client.admin.configs import ConfigEntry, ConfigResourceType, ConfigSource
from ottla.client.admin.credentials import TokenDescription, UserDescription
from ottla.client.admin.decisions import DecisionHistory, DecisionRecord, RebalanceHistory
from ottla.client.admin.groups import (
    GroupDescription,
    GroupListing,
    GroupMember,
    SharePartitionOffset,
)
from ottla.client.admin.logs import (
    UP_TO_END,
    LogDirectory,
    ProducerDescription,
    RetentionStatus,
    TimeLeft,
)
from ottla.client.admin.partitions import ElectionKind, PartitionStatus, Reassignment
from ottla.client.admin.topics import NewTopic
from ottla.client.admin.transactions import (
    OpenTransaction,
    TransactionDescription,
    TransactionListing,
)
from ottla.client.admin.undo import RecordedChange
from ottla.client.assignors import Assignor
from ottla.client.assignors.subscriptions import Subscription
from ottla.client.common.errors import (
    BootstrapFailed,
    BrokerRefused,
    CallbackFailed,
    ClientClosed,
    ClientError,
    CommitFailed,
    ConnectionFailed,
    DeliveryFailed,
    OffsetOutOfRange,
    ProducerFenced,
    RequestTimedOut,
    TopicRecreated,
    TransactionFailed,
    UnknownTopic,
    UnsupportedByBroker,
)
from ottla.client.common.offset_account import (
    CompactedBy,
    DeletedBy,
    DeletionEvidence,
    LostBy,
    OffsetAccount,
)
from ottla.client.connection.coordinator import GroupMetadata, OffsetAndMetadata
from ottla.client.connection.security import supply_tokens
from ottla.client.connection.view import (
    Address,
    BrokerDescription,
    PartitionDescription,
    TopicDescription,
)
from ottla.client.consumer.consumer import Consumer
from ottla.client.consumer.offsets import EARLIEST, LATEST, MAX_TIMESTAMP, OffsetAndTimestamp
from ottla.client.consumer.options import ConsumerOptions
from ottla.client.consumer.partition_state import (
    ConsumerRecord,
    ConsumerRecords,
    RawBatches,
    Records,
)
from ottla.client.consumer.positions import LogTruncated
from ottla.client.producer.delivery import Delivery
from ottla.client.producer.encoded_batch import PreparedBatch
from ottla.client.producer.options import ProducerOptions
from ottla.client.producer.producer import Producer
from ottla.ledger.history import StartCause
from ottla.metadata.quota_entity import DEFAULT, Default, QuotaEntity
from ottla.record.codec import Record
from ottla.security.acl import Acl, AclFilter, ResourcePattern
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.security.principal import Principal
from ottla.security.sasl.bearer import OAuthBearerToken
from ottla.security.sasl.scram_keys import ScramMechanism
from ottla.security.tokens import DelegationToken
from ottla.wire.messages.decisions import (
    DescribedRebalance,
    MemberWait,
    RebalanceCause,
)

__all__ = [
    "DEFAULT",
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "UP_TO_END",
    "Acl",
    "AclFilter",
    "AclOperation",
    "AclResource",
    "Address",
    "Admin",
    "AdminOptions",
    "Assignor",
    "BootstrapFailed",
    "BrokerDescription",
    "BrokerRefused",
    "CallbackFailed",
    "CleanerStatus",
    "CleaningPass",
    "ClientClosed",
    "ClientDelays",
    "ClientError",
    "ClientFailure",
    "ClientUsage",
    "ClientUse",
    "ClusterDescription",
    "CommitFailed",
    "CompactAction",
    "CompactedBy",
    "CompactionStatus",
    "ConfigEntry",
    "ConfigResourceType",
    "ConfigSource",
    "ConnectionFailed",
    "Consumer",
    "ConsumerOptions",
    "ConsumerRecord",
    "ConsumerRecords",
    "DecisionHistory",
    "DecisionRecord",
    "Default",
    "DelayReason",
    "DelegationToken",
    "DeletedBy",
    "DeletionEvidence",
    "Delivery",
    "DeliveryFailed",
    "DescribedRebalance",
    "ElectionKind",
    "ErrorCode",
    "FailedCleaning",
    "GroupDescription",
    "GroupListing",
    "GroupMember",
    "GroupMetadata",
    "LogDirectory",
    "LogTruncated",
    "LostBy",
    "MemberWait",
    "NewTopic",
    "OAuthBearerToken",
    "OffsetAccount",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "OffsetOutOfRange",
    "OpenTransaction",
    "OttlaError",
    "PartitionDescription",
    "PartitionStatus",
    "PatternType",
    "Permission",
    "PreparedBatch",
    "Principal",
    "Producer",
    "ProducerDescription",
    "ProducerFenced",
    "ProducerOptions",
    "QuotaEntity",
    "RawBatches",
    "Reassignment",
    "RebalanceCause",
    "RebalanceHistory",
    "Record",
    "RecordedChange",
    "Records",
    "RequestTimedOut",
    "ResourcePattern",
    "RetentionStatus",
    "ScramMechanism",
    "SharePartitionOffset",
    "SlowRequest",
    "StartCause",
    "Subscription",
    "TimeLeft",
    "TokenDescription",
    "TopicDescription",
    "TopicPartition",
    "TopicRecreated",
    "TransactionDescription",
    "TransactionFailed",
    "TransactionListing",
    "UnknownTopic",
    "UnsupportedByBroker",
    "UserDescription",
    "supply_tokens",
]


def __dir__() -> list[str]:
    return __all__
