"""How a consumer reads: every setting with its default."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from ottla.base.errors import ErrorCode
from ottla.base.ids import TopicPartition
from ottla.client.assignors import Assignor, assignor_named
from ottla.client.connection.backoff import Backoff
from ottla.client.connection.cluster import BOOTSTRAP_TIMEOUT_MS, ClusterOptions
from ottla.client.connection.security import ClientConfig, security_by
from ottla.client.consumer.fetcher import FetchOptions
from ottla.client.consumer.offsets import EARLIEST, LATEST, READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.errors import ClientError
from ottla.client.group.membership import MemberOptions

# Called with the partitions concerned; may be asynchronous.
Listener = Callable[[set[TopicPartition]], Awaitable[None] | None]

Reset = Literal["earliest", "latest", "none"]
AssignorName = Literal["range", "roundrobin", "sticky", "cooperative-sticky"]
_RESETS = {"earliest": EARLIEST, "latest": LATEST, "none": None}


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerOptions:
    """Times in milliseconds, sizes in bytes.

    `auto_offset_reset`: where to read from when a partition has no committed offset, or an
    offset is no longer in the log: `earliest` (default: skip nothing), `latest` or `none`
    (raise). `assignors`: by preference, of `range`, `roundrobin`, `sticky`,
    `cooperative-sticky`; a group uses one that all its members offer. `bootstrap_timeout_ms`: for
    how long a first answer of any bootstrap address is waited for; BootstrapFailed then. `config`:
    settings of Kafka's clients for TLS and logins, by their names, or the path of a file with them;
    None: the file that OTTLA_CONFIG names.
    """

    group_id: str | None = None
    group_instance_id: str | None = None
    auto_offset_reset: Reset = "earliest"
    enable_auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    read_committed: bool = False
    check_crcs: bool = True
    assignors: tuple[AssignorName | Assignor, ...] = ("cooperative-sticky", "range")
    session_timeout_ms: int = 45_000
    heartbeat_interval_ms: int = 3_000
    max_poll_interval_ms: int = 300_000
    fetch_min_bytes: int = 1
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 50 * 1024 * 1024
    fetch_partition_bytes: int = 1024 * 1024
    request_timeout_ms: int = 30_000
    bootstrap_timeout_ms: int = BOOTSTRAP_TIMEOUT_MS
    metadata_max_age_ms: int = 300_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    retry_timeout_ms: int = 60_000
    client_id: str = "ottla-consumer"
    config: ClientConfig = field(default=None, repr=False)


def cluster_options(options: ConsumerOptions) -> ClusterOptions:
    """The part that concerns reaching the cluster."""
    return ClusterOptions(
        client_id=options.client_id,
        security=security_by(options.config),
        request_timeout_ms=options.request_timeout_ms,
        bootstrap_timeout_ms=options.bootstrap_timeout_ms,
        metadata_max_age_ms=options.metadata_max_age_ms,
        retry_timeout_ms=options.retry_timeout_ms,
        backoff=_backoff(options),
    )


def fetch_options(options: ConsumerOptions) -> FetchOptions:
    """The part that concerns fetching. Raises ClientError for an unknown reset."""
    if options.auto_offset_reset not in _RESETS:
        raise ClientError(
            ErrorCode.INVALID_CONFIG,
            f"auto_offset_reset is earliest, latest or none, not {options.auto_offset_reset!r}",
        )
    return FetchOptions(
        min_bytes=options.fetch_min_bytes,
        max_wait_ms=options.fetch_max_wait_ms,
        fetch_bytes=options.fetch_max_bytes,
        partition_bytes=options.fetch_partition_bytes,
        isolation_level=READ_COMMITTED if options.read_committed else READ_UNCOMMITTED,
        check_crcs=options.check_crcs,
        reset_to=_RESETS[options.auto_offset_reset],
        backoff=_backoff(options),
    )


def member_options(options: ConsumerOptions) -> MemberOptions:
    """The part that concerns the group. Raises ClientError for assignors that do not mix."""
    assignors = tuple(assignor_named(name) for name in options.assignors)
    if not assignors:
        raise ClientError(ErrorCode.INVALID_CONFIG, "give at least one assignor")
    return MemberOptions(
        instance_id=options.group_instance_id,
        session_timeout_ms=options.session_timeout_ms,
        heartbeat_interval_ms=options.heartbeat_interval_ms,
        max_poll_interval_ms=options.max_poll_interval_ms,
        assignors=assignors,
    )


def _backoff(options: ConsumerOptions) -> Backoff:
    return Backoff(options.retry_backoff_ms, options.retry_backoff_max_ms)
