"""How a producer collects and sends: every setting with its default."""

from dataclasses import dataclass, field
from typing import Literal

from ottla.base.errors import ErrorCode
from ottla.client.connection.backoff import Backoff
from ottla.client.connection.cluster import BOOTSTRAP_TIMEOUT_MS, ClusterOptions
from ottla.client.connection.security import ClientConfig, security_by
from ottla.client.errors import ClientError
from ottla.client.producer.partitioner import Partitioner
from ottla.client.producer.sender import SenderOptions
from ottla.record.compression import Compression

Acks = Literal[0, 1, -1, "all"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]
PartitionerName = Literal["default", "round_robin", "uniform"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """How records are collected and sent. Times in milliseconds, sizes in bytes.

    `idempotence` None means: on where `acks` is "all" and at most 5 requests are in flight.
    `bootstrap_timeout_ms`: for how long a first answer of any bootstrap address is waited for;
    BootstrapFailed then. `config`: settings of Kafka's clients for TLS and logins, by their names,
    or the path of a file with them; None: the file that OTTLA_CONFIG names.
    """

    acks: Acks = "all"
    compression: Codec = "none"
    compression_level: int | None = None
    linger_ms: int = 5
    batch_bytes: int = 240 * 1024
    buffer_bytes: int = 32 * 1024 * 1024
    request_bytes: int = 1024 * 1024
    max_in_flight: int = 5
    idempotence: bool | None = None
    partitioner: PartitionerName | Partitioner = "default"
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    bootstrap_timeout_ms: int = BOOTSTRAP_TIMEOUT_MS
    delivery_timeout_ms: int = 120_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    allow_topic_creation: bool = True
    client_id: str = "ottla-producer"
    config: ClientConfig = field(default=None, repr=False)


def acks_number(acks: Acks) -> int:
    """As the protocol has it: 0, 1, or -1 for all in-sync replicas. Raises ClientError."""
    if acks not in (0, 1, -1, "all"):
        raise ClientError(ErrorCode.INVALID_REQUIRED_ACKS, f"acks is 0, 1 or 'all', not {acks!r}")
    return -1 if acks == "all" else acks


def is_idempotent(options: ProducerOptions) -> bool:
    """Whether batches carry a producer id. Raises ClientError where it cannot work."""
    possible = acks_number(options.acks) == -1 and options.max_in_flight <= 5
    if options.idempotence and not possible:
        raise ClientError(
            ErrorCode.INVALID_CONFIG,
            "idempotence needs acks='all' and max_in_flight of at most 5; "
            "set these, or idempotence=False",
        )
    return possible if options.idempotence is None else options.idempotence


def cluster_options(options: ProducerOptions) -> ClusterOptions:
    """The part that concerns reaching the cluster."""
    return ClusterOptions(
        client_id=options.client_id,
        security=security_by(options.config),
        request_timeout_ms=options.request_timeout_ms,
        bootstrap_timeout_ms=options.bootstrap_timeout_ms,
        connect_timeout_ms=options.connect_timeout_ms,
        retry_timeout_ms=options.delivery_timeout_ms,
        backoff=_backoff(options),
        allow_topic_creation=options.allow_topic_creation,
    )


def sender_options(options: ProducerOptions) -> SenderOptions:
    """The part that concerns sending batches.

    Raises ClientError for an unknown codec, and for memory that holds no batch.
    """
    if options.buffer_bytes < options.batch_bytes:
        raise ClientError(
            ErrorCode.INVALID_CONFIG,
            f"buffer_bytes is {options.buffer_bytes}; give at least the {options.batch_bytes} of"
            " batch_bytes, or lower that",
        )
    return SenderOptions(
        acks=acks_number(options.acks),
        compression=_codec_number(options.compression),
        compression_level=options.compression_level,
        max_in_flight=options.max_in_flight,
        request_bytes=options.request_bytes,
        request_timeout_ms=options.request_timeout_ms,
        delivery_timeout_ms=options.delivery_timeout_ms,
        backoff=_backoff(options),
    )


def _codec_number(name: str) -> int:
    try:
        return Compression[name.upper()]
    except KeyError:
        raise ClientError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"no codec {name!r}; use none, gzip, snappy, lz4 or zstd",
        ) from None


def _backoff(options: ProducerOptions) -> Backoff:
    return Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
