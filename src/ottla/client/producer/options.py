"""How a producer collects and sends: every setting with its default."""

from dataclasses import dataclass
from typing import Literal

from ottla.base.errors import ErrorCode
from ottla.client.connection.backoff import Backoff
from ottla.client.connection.cluster import ClusterOptions
from ottla.client.errors import ClientError
from ottla.client.producer.partitioner import Partitioner
from ottla.client.producer.sender import SenderOptions
from ottla.record.compression import Compression

Acks = Literal[0, 1, -1, "all"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProducerOptions:
    """How records are collected and sent. Times in milliseconds, sizes in bytes.

    `idempotence` None means: on where `acks` is "all" and at most 5 requests are in flight.
    """

    acks: Acks = "all"
    compression: str = "none"
    compression_level: int | None = None
    linger_ms: int = 5
    batch_bytes: int = 240 * 1024
    buffer_bytes: int = 32 * 1024 * 1024
    request_bytes: int = 1024 * 1024
    max_in_flight: int = 5
    idempotence: bool | None = None
    partitioner: str | Partitioner = "default"
    request_timeout_ms: int = 30_000
    connect_timeout_ms: int = 10_000
    delivery_timeout_ms: int = 120_000
    retry_backoff_ms: int = 100
    retry_backoff_max_ms: int = 1_000
    allow_topic_creation: bool = True
    client_id: str = "ottla-producer"

    @property
    def acks_number(self) -> int:
        """As the protocol has it: 0, 1, or -1 for all in-sync replicas."""
        if self.acks not in (0, 1, -1, "all"):
            raise ClientError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks is 0, 1 or 'all', not {self.acks!r}"
            )
        return -1 if self.acks == "all" else self.acks

    @property
    def is_idempotent(self) -> bool:
        """Whether batches carry a producer id. Raises ClientError where it cannot work."""
        possible = self.acks_number == -1 and self.max_in_flight <= 5
        if self.idempotence and not possible:
            raise ClientError(
                ErrorCode.INVALID_CONFIG,
                "idempotence needs acks='all' and max_in_flight of at most 5; "
                "set these, or idempotence=False",
            )
        return possible if self.idempotence is None else self.idempotence

    @property
    def codec(self) -> int:
        """Number of the compression codec. Raises ClientError for an unknown name."""
        try:
            return Compression[self.compression.upper()]
        except KeyError:
            raise ClientError(
                ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
                f"no codec {self.compression!r}; use none, gzip, snappy, lz4 or zstd",
            ) from None

    def cluster(self) -> ClusterOptions:
        """The part that concerns reaching the cluster."""
        return ClusterOptions(
            client_id=self.client_id,
            request_timeout_ms=self.request_timeout_ms,
            connect_timeout_ms=self.connect_timeout_ms,
            retry_timeout_ms=self.delivery_timeout_ms,
            backoff=self._backoff(),
            allow_topic_creation=self.allow_topic_creation,
        )

    def sender(self) -> SenderOptions:
        """The part that concerns sending batches."""
        return SenderOptions(
            acks=self.acks_number,
            compression=self.codec,
            compression_level=self.compression_level,
            max_in_flight=self.max_in_flight,
            request_bytes=self.request_bytes,
            request_timeout_ms=self.request_timeout_ms,
            delivery_timeout_ms=self.delivery_timeout_ms,
            backoff=self._backoff(),
        )

    def _backoff(self) -> Backoff:
        return Backoff(self.retry_backoff_ms, self.retry_backoff_max_ms)
