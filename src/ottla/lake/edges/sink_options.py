"""The options of the sink `ottla`, for streams and for batches.

| option | means | default |
|---|---|---|
| topic | where rows go; the column `topic` counts without it | |
| kafka.bootstrap.servers | `host:port,…` of Ottla or Apache Kafka | localhost:9092 |
| config | a file of settings of Kafka's clients, for TLS and logins | that of OTTLA_CONFIG |
| kafka.… | single ones, which overrule the file | |
| kafka.compression.type | none, gzip, snappy, lz4 or zstd | lz4 |
| kafka.batch.size | about so many bytes, before compression, are in a batch | 245760 |
| kafka.transaction.timeout.ms | longest time to send one epoch | 60000 |
| firstEpoch | QUERY:N, the epoch that needs no mark before it, see the error that names it | |
| id | batch only: a write with this id happens once, however often it is run | |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NoReturn

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.source.access import ClientAccess, access_of, bootstrap_of, require_known
from ottla.record.compression import Compression

_OPTIONS = (
    "topic",
    "config",
    "includeHeaders",
    "firstEpoch",
    "id",
)
_CODEC = "kafka.compression.type"
# Options that Spark adds.
_SPARKS = ("path", "checkpointLocation", "queryName")


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """The parsed options; the module's docstring has the table."""

    topic: str | None
    bootstrap: str
    compression: int
    batch_bytes: int
    transaction_timeout_ms: int
    first_epoch: tuple[str, int] | None  # The id of a query, and an epoch.
    id: str | None
    access: ClientAccess = field(default_factory=ClientAccess)


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Parse the options, whose case Spark does not keep. Raises OttlaError for wrong options."""
    given = {name.lower(): value for name, value in options.items()}
    require_known(given, _OPTIONS, _wrong, _SPARKS)
    codec = given.get(_CODEC, "lz4")
    if codec.upper() not in Compression.__members__:
        _wrong(f"{_CODEC} is {codec!r}, not none, gzip, snappy, lz4 or zstd")
    return SinkOptions(
        topic=given.get("topic"),
        bootstrap=bootstrap_of(given),
        compression=Compression[codec.upper()],
        batch_bytes=_number(given, "kafka.batch.size", 240 * 1024),
        transaction_timeout_ms=_number(given, "kafka.transaction.timeout.ms", 60_000),
        first_epoch=_first_epoch(given["firstepoch"]) if "firstepoch" in given else None,
        id=given.get("id"),
        access=access_of(given),
    )


def _number(given: Mapping[str, str], name: str, default: int) -> int:
    text = given.get(name, str(default))
    if not text.isdecimal() or int(text) < 1:
        _wrong(f"{name} is {text!r}, not a whole number from 1 on")
    return int(text)


def _first_epoch(text: str) -> tuple[str, int]:
    query, _, number = text.rpartition(":")
    if not query or not number.isdecimal():
        _wrong(f"firstEpoch is {text!r}, not QUERY:N as the error that asks for it says")
    return query, int(number)


def _wrong(what: str) -> NoReturn:
    raise OttlaError(ErrorCode.INVALID_REQUEST, f"sink ottla: {what}")
