"""The options of a producer, with defaults."""

from collections.abc import Callable
from typing import Any, Final, Literal, TypedDict

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import ClientError
from ottla.client.connection.attempts import Backoff
from ottla.client.connection.cluster import BOOTSTRAP_TIMEOUT_MS, ClusterOptions
from ottla.client.connection.security import ClientConfig, security_by
from ottla.client.producer.router import Partitioner

Acks = Literal[0, 1, -1, "all"]
Codec = Literal["none", "gzip", "snappy", "lz4", "zstd"]


class ProducerOptions(TypedDict, total=False):
    """Keyword arguments of `Producer`, by Kafka's names.

    Times in milliseconds, sizes in bytes. `compression` is short for `compression_type`.
    `enable_idempotence` None means: on if `acks` is "all" and at most 5 requests are in flight.
    `key_serializer`, `value_serializer`: called with keys or values that are not bytes, str or
    None. `partitioner`: called with topic, key, value and the number of partitions; None means
    murmur2 of the key as in Java, and one partition after the other without a key (KIP-794).
    `transactional_id`: records are sent within transactions only.
    `transaction_timeout_ms`: the coordinator aborts a transaction that is open for longer, and
    fences its producer. `transaction_version_max`: 1 means behaviour as before KIP-890, even if the
    cluster supports more. `bootstrap_timeout_ms`: how long to wait for a first answer of any
    bootstrap address before BootstrapFailed is raised. `config`: settings of Kafka's clients for
    TLS and logins, as a mapping or the path of a file; with None the client reads the file that
    OTTLA_CONFIG names.
    """

    acks: Acks
    compression_type: Codec
    compression: Codec
    compression_level: int | None
    linger_ms: int
    batch_size: int
    buffer_memory: int
    max_request_size: int
    max_in_flight_requests_per_connection: int
    enable_idempotence: bool | None
    partitioner: Partitioner | None
    key_serializer: Callable[[Any], bytes] | None
    value_serializer: Callable[[Any], bytes] | None
    transactional_id: str | None
    transaction_timeout_ms: int
    transaction_version_max: int
    request_timeout_ms: int
    connect_timeout_ms: int
    bootstrap_timeout_ms: int
    delivery_timeout_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    allow_auto_create_topics: bool
    client_id: str
    config: ClientConfig


DEFAULTS: Final = ProducerOptions(
    acks="all",
    compression_type="none",
    compression_level=None,
    linger_ms=5,
    batch_size=240 * 1024,
    buffer_memory=32 * 1024 * 1024,
    max_request_size=1024 * 1024,
    max_in_flight_requests_per_connection=5,
    enable_idempotence=None,
    partitioner=None,
    key_serializer=None,
    value_serializer=None,
    transactional_id=None,
    transaction_timeout_ms=60_000,
    transaction_version_max=2,
    request_timeout_ms=30_000,
    connect_timeout_ms=10_000,
    bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
    delivery_timeout_ms=120_000,
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
    allow_auto_create_topics=True,
    client_id="ottla-producer",
    config=None,
)


def acks_number(acks: Acks) -> int:
    """Return `acks` as in the protocol: 0, 1, or -1 for all in-sync replicas."""
    return -1 if acks == "all" else acks


def check_options(options: ProducerOptions) -> None:
    """Raise ClientError for an empty transactional id, and for memory too small for one batch."""
    if options["transactional_id"] == "":
        raise ClientError(ErrorCode.INVALID_REQUEST, "give a transactional_id that is not empty")
    if options["buffer_memory"] < options["batch_size"]:
        raise ClientError(
            ErrorCode.INVALID_CONFIG,
            f"buffer_memory is {options['buffer_memory']}; give at least the"
            f" {options['batch_size']} of batch_size, or lower that",
        )


def is_idempotent(options: ProducerOptions) -> bool:
    """Whether batches have a producer id. Raises ClientError if the options contradict that."""
    possible = (
        acks_number(options["acks"]) == -1 and options["max_in_flight_requests_per_connection"] <= 5
    )
    is_wanted = True if options["transactional_id"] is not None else options["enable_idempotence"]
    if is_wanted and not possible:
        raise ClientError(
            ErrorCode.INVALID_CONFIG,
            "enable_idempotence needs acks='all' and max_in_flight_requests_per_connection of at"
            " most 5, and transactions need it; set these, or enable_idempotence=False",
        )
    return possible if is_wanted is None else is_wanted


def cluster_options(options: ProducerOptions) -> ClusterOptions:
    """Return the options for connecting to the cluster."""
    return ClusterOptions(
        client_id=options["client_id"],
        security=security_by(options["config"]),
        request_timeout_ms=options["request_timeout_ms"],
        bootstrap_timeout_ms=options["bootstrap_timeout_ms"],
        connect_timeout_ms=options["connect_timeout_ms"],
        retry_timeout_ms=options["delivery_timeout_ms"],
        backoff=backoff(options),
        allow_topic_creation=options["allow_auto_create_topics"],
    )


def backoff(options: ProducerOptions) -> Backoff:
    """Return the delays between attempts."""
    return Backoff(options["retry_backoff_ms"], options["retry_backoff_max_ms"])
