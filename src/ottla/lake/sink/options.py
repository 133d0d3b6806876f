"""The options of the sink `ottla`, for streams and for batches.

| option | means | default |
|---|---|---|
| topic | where rows go; the column `topic` counts without it | |
| bootstrap, kafka.bootstrap.servers | `host:port,…` of Ottla or Apache Kafka | localhost:9092 |
| config | a file of settings of Kafka's clients, for TLS and logins | that of OTTLA_CONFIG |
| kafka.security.protocol, kafka.sasl.…, kafka.ssl.… | single ones, which overrule the file | |
| compression | none, gzip, snappy, lz4 or zstd | lz4 |
| batchBytes | about so many bytes, before compression, are in a batch | 245760 |
| transactionTimeoutMs | sending one epoch may take so long | 60000 |
| stagingLocation | executors and driver see it; for batches of large tasks | the checkpoint |
| inlineBytes | a task with so many bytes or fewer hands them to the driver by Spark | 1048576 |
| firstEpoch | the epoch that needs no mark before it, see the error that names it | 0 |
| id | batch only: a write with this id happens once, however often it is run | |
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.access import ClientAccess, access_of, bootstrap_of, is_of_access
from ottla.record.compression import Compression

_OPTIONS = (
    "topic",
    "bootstrap",
    "config",
    "compression",
    "batchBytes",
    "transactionTimeoutMs",
    "stagingLocation",
    "inlineBytes",
    "firstEpoch",
    "id",
)
# What Spark adds of its own.
_SPARKS = {"path", "checkpointlocation", "queryname"}


@dataclass(frozen=True, slots=True)
class SinkOptions:
    """See the module's table."""

    topic: str | None
    bootstrap: str
    compression: int
    batch_bytes: int
    transaction_timeout_ms: int
    staging: str | None
    inline_bytes: int
    first_epoch: int | None
    id: str | None
    access: ClientAccess = field(default_factory=ClientAccess)


def sink_options(options: Mapping[str, str]) -> SinkOptions:
    """Read the options (Spark does not keep their case). Raises OttlaError for wrong ones."""
    given = {name.lower(): value for name, value in options.items()}
    for name in given.keys() - {name.lower() for name in _OPTIONS} - _SPARKS:
        if is_of_access(name):
            continue
        raise _wrong(f"there is no option {name!r}; the options are {', '.join(_OPTIONS)}")
    codec = given.get("compression", "lz4")
    if codec.upper() not in Compression.__members__:
        raise _wrong(f"compression is {codec!r}, not none, gzip, snappy, lz4 or zstd")
    staging = given.get("staginglocation") or given.get("checkpointlocation")
    return SinkOptions(
        topic=given.get("topic"),
        bootstrap=bootstrap_of(given),
        compression=Compression[codec.upper()],
        batch_bytes=_number(given, "batchBytes", 240 * 1024),
        transaction_timeout_ms=_number(given, "transactionTimeoutMs", 60_000),
        staging=f"{staging.rstrip('/')}/ottla-sink" if staging else None,
        inline_bytes=_number(given, "inlineBytes", 1 << 20, least=0),
        first_epoch=_number(given, "firstEpoch", 0, least=0) if "firstepoch" in given else None,
        id=given.get("id"),
        access=access_of(given),
    )


def _number(given: Mapping[str, str], name: str, default: int, least: int = 1) -> int:
    text = given.get(name.lower(), str(default))
    if not text.isdecimal() or int(text) < least:
        raise _wrong(f"{name} is {text!r}, not a whole number from {least} on")
    return int(text)


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_REQUEST, f"sink ottla: {what}")
