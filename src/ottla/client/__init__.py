"""Producer, consumer and administration for any Kafka-protocol broker. Uses wire and record only.

`Producer`, `TransactionalProducer`, `Consumer` and `Admin` are for asyncio; `ottla.client.sync` has
the same as plain calls; `ottla.client.ranges` reads a range of offsets as raw batches over a
blocking socket.
"""

from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin, AdminOptions
from ottla.client.admin.configs import ResourceKind
from ottla.client.admin.partitions import ElectionKind
from ottla.client.admin.topics import NewTopic
from ottla.client.consumer import Consumer
from ottla.client.consumer_options import ConsumerOptions
from ottla.client.delivery import Delivery
from ottla.client.epochs import LogTruncated
from ottla.client.errors import (
    BrokerRefused,
    ClientError,
    CommitFailed,
    ConnectionFailed,
    DeliveryFailed,
    OffsetOutOfRange,
    ProducerFenced,
    RequestTimedOut,
    TransactionFailed,
    UnknownTopic,
)
from ottla.client.group_metadata import GroupMetadata
from ottla.client.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from ottla.client.partition_state import ConsumedRecord, OffsetAndMetadata, RawBatches, Records
from ottla.client.producer import Producer
from ottla.client.producer_options import ProducerOptions
from ottla.client.transactional_producer import TransactionalProducer

__all__ = [
    "EARLIEST",
    "LATEST",
    "MAX_TIMESTAMP",
    "Admin",
    "AdminOptions",
    "BrokerRefused",
    "ClientError",
    "CommitFailed",
    "ConnectionFailed",
    "ConsumedRecord",
    "Consumer",
    "ConsumerOptions",
    "Delivery",
    "DeliveryFailed",
    "ElectionKind",
    "GroupMetadata",
    "LogTruncated",
    "NewTopic",
    "OffsetAndMetadata",
    "OffsetOutOfRange",
    "Producer",
    "ProducerFenced",
    "ProducerOptions",
    "RawBatches",
    "Records",
    "RequestTimedOut",
    "ResourceKind",
    "TopicPartition",
    "TransactionFailed",
    "TransactionalProducer",
    "UnknownTopic",
]
