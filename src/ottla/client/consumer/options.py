"""The options of a consumer, with defaults."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, Literal, TypedDict

from ottla.base.ids import TopicPartition
from ottla.client.assignors import Assignor
from ottla.client.connection.attempts import Backoff
from ottla.client.connection.cluster import BOOTSTRAP_TIMEOUT_MS, ClusterOptions
from ottla.client.connection.security import ClientConfig, security_by
from ottla.client.consumer.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED

# Called with the partitions concerned; may be asynchronous.
Listener = Callable[[set[TopicPartition]], Awaitable[None] | None]

Reset = Literal["earliest", "latest", "none"]
AssignorName = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]
IsolationLevel = Literal["read_committed", "read_uncommitted"]
_ISOLATION = {"read_committed": READ_COMMITTED, "read_uncommitted": READ_UNCOMMITTED}
_RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}


class ConsumerOptions(TypedDict, total=False):
    """Keyword arguments of `Consumer`, by Kafka's names.

    Times in milliseconds, sizes in bytes. `group` is short for `group_id`. `auto_offset_reset`:
    where to start if a partition has no committed offset, or its offset is no longer in the log:
    `earliest` (default: skip nothing), `latest` or `none` (raise). `partition_assignment_strategy`:
    in order of preference, `range`, `roundrobin`, `sticky`, `cooperative-sticky` or an `Assignor`;
    a group uses one that all its members offer. `key_deserializer`, `value_deserializer`: called
    with keys and values that are not None, of records returned one by one. `bootstrap_timeout_ms`:
    how long to wait for a first answer of any bootstrap address before BootstrapFailed is raised.
    `config`:
    settings of Kafka's clients for TLS and logins, as a mapping or the path of a file; with None
    the client reads the file that OTTLA_CONFIG names.
    """

    group_id: str | None
    group: str | None
    group_instance_id: str | None
    auto_offset_reset: Reset
    enable_auto_commit: bool
    auto_commit_interval_ms: int
    isolation_level: IsolationLevel
    check_crcs: bool
    partition_assignment_strategy: tuple[AssignorName | Assignor, ...]
    key_deserializer: Callable[[bytes], Any] | None
    value_deserializer: Callable[[bytes], Any] | None
    session_timeout_ms: int
    heartbeat_interval_ms: int
    max_poll_interval_ms: int
    max_poll_records: int
    fetch_min_bytes: int
    fetch_max_wait_ms: int
    fetch_max_bytes: int
    max_partition_fetch_bytes: int
    request_timeout_ms: int
    bootstrap_timeout_ms: int
    metadata_max_age_ms: int
    retry_backoff_ms: int
    retry_backoff_max_ms: int
    default_api_timeout_ms: int
    client_id: str
    config: ClientConfig


DEFAULTS: Final = ConsumerOptions(
    group_id=None,
    group_instance_id=None,
    auto_offset_reset="earliest",
    enable_auto_commit=True,
    auto_commit_interval_ms=5_000,
    isolation_level="read_uncommitted",
    check_crcs=True,
    partition_assignment_strategy=("cooperative-sticky", "range"),
    key_deserializer=None,
    value_deserializer=None,
    session_timeout_ms=45_000,
    heartbeat_interval_ms=3_000,
    max_poll_interval_ms=300_000,
    max_poll_records=100_000,
    fetch_min_bytes=1,
    fetch_max_wait_ms=500,
    fetch_max_bytes=50 * 1024 * 1024,
    max_partition_fetch_bytes=1024 * 1024,
    request_timeout_ms=30_000,
    bootstrap_timeout_ms=BOOTSTRAP_TIMEOUT_MS,
    metadata_max_age_ms=300_000,
    retry_backoff_ms=100,
    retry_backoff_max_ms=1_000,
    default_api_timeout_ms=60_000,
    client_id="ottla-consumer",
    config=None,
)


def cluster_options(options: ConsumerOptions) -> ClusterOptions:
    """Return the options for connecting to the cluster."""
    return ClusterOptions(
        client_id=options["client_id"],
        security=security_by(options["config"]),
        request_timeout_ms=options["request_timeout_ms"],
        bootstrap_timeout_ms=options["bootstrap_timeout_ms"],
        metadata_max_age_ms=options["metadata_max_age_ms"],
        retry_timeout_ms=options["default_api_timeout_ms"],
        backoff=backoff(options),
    )


def start_rule(options: ConsumerOptions) -> int | None:
    """Return where to start without a position: EARLIEST, LATEST, or None, which is an error."""
    return _RESETS[options["auto_offset_reset"]]


def isolation_level(options: ConsumerOptions) -> int:
    """Return the isolation level as in the protocol."""
    return _ISOLATION[options["isolation_level"]]


def backoff(options: ConsumerOptions) -> Backoff:
    """Return the delays between attempts."""
    return Backoff(options["retry_backoff_ms"], options["retry_backoff_max_ms"])
