"""The validation rules for values of settings."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.tables.setting import Validator, Value


def at_least(least: float) -> Validator:
    """Return a rule for a number not below `least`."""

    def complaint(value: Value) -> str:
        if isinstance(value, (int, float)) and value < least:
            return f"it must be at least {least}"
        return ""

    return Validator(f"[{least},...]", complaint)


def between(least: float, most: float) -> Validator:
    """Return a rule for a number from `least` to `most`, both included."""

    def complaint(value: Value) -> str:
        if isinstance(value, (int, float)) and not least <= value <= most:
            return f"it must lie between {least} and {most}"
        return ""

    return Validator(f"[{least},...,{most}]", complaint)


def one_of(*allowed: str, ignore_case: bool = False) -> Validator:
    """Return a rule for text that is one of `allowed`."""
    known = {word.lower() for word in allowed} if ignore_case else set(allowed)

    def complaint(value: Value) -> str:
        word = str(value).lower() if ignore_case else str(value)
        if word in known:
            return ""
        # The empty text is a choice without a name.
        return f"choose one of {', '.join(filter(None, allowed))}"

    return Validator(f"[{', '.join(allowed)}]", complaint)


def list_of(*allowed: str, may_be_empty: bool = False) -> Validator:
    """Return a rule for a list whose items are all among `allowed`."""

    def complaint(value: Value) -> str:
        assert isinstance(value, tuple)
        strange = [item for item in value if item not in allowed]
        if strange or not (value or may_be_empty):
            named = f"{strange[0][:100]} is unknown; " if strange else "it is empty; "
            return f"{named}choose from {', '.join(allowed)}"
        return ""

    return Validator(f"[{', '.join(allowed)}]", complaint)


def not_empty() -> Validator:
    """Return a rule for text or a list that is not empty."""
    return Validator("non-empty", lambda value: "" if value else "it may not be empty")


def listener_complaint(entry: str) -> str:
    """Return the fault in one entry of `listeners`; "" if it is NAME://host:port."""
    name, slashes, rest = entry.partition("://")
    _, colon, port = rest.rpartition(":")
    if slashes and name and colon and port.isdecimal() and int(port) < 65536:
        return ""
    return f"{entry[:100]!r} is not of the form NAME://host:port"


def protocol_complaint(item: str) -> str:
    """Return the fault in one pair of `listener.security.protocol.map`; "" if it is valid."""
    name, colon, protocol = item.strip().partition(":")
    if not (name and colon and protocol):
        return f"{item[:100]!r} is not of the form NAME:PROTOCOL"
    if protocol.upper() not in _PROTOCOLS:
        return f"{protocol[:100]} is no protocol; choose one of {', '.join(_PROTOCOLS)}"
    return ""


_PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")


def _listeners_complaint(value: Value) -> str:
    items = value if isinstance(value, tuple) else ()
    return next((words for words in map(listener_complaint, items) if words), "")


def _protocols_complaint(value: Value) -> str:
    items = str(value).split(",")
    return next((words for words in map(protocol_complaint, items) if words), "")


def _retention_complaint(value: Value) -> str:
    return "it must be at least 1, or -1 for no limit" if value == 0 else ""


def _idle_complaint(value: Value) -> str:
    if isinstance(value, int) and 0 <= value <= _LOGIN_DELAY_MS:
        return f"it must be above {_LOGIN_DELAY_MS}, or -1 for no limit"
    return ""


# Kafka requires connections.max.idle.ms to exceed connection.failed.authentication.delay.ms.
_LOGIN_DELAY_MS = 100


def _share_complaint(value: Value) -> str:
    if isinstance(value, float) and 0 < value <= 1:
        return ""
    return "it must be above 0 and at most 1"


def _gzip_complaint(value: Value) -> str:
    if isinstance(value, int) and (value == -1 or 1 <= value <= 9):
        return ""
    return "choose 1 (fast) to 9 (small), or -1 for the codec's own default"


def _throttled_complaint(value: Value) -> str:
    """The fault in a value that should be `*`, empty, or `partition:broker` pairs."""
    assert isinstance(value, tuple)
    if value == ("*",):
        return ""
    for item in value:
        partition, colon, broker = item.partition(":")
        if not (colon and partition.isdecimal() and broker.isdecimal()):
            return f"{item[:100]} is not of the form partition:broker (write * for all replicas)"
    return ""


def _overrides_complaint(value: Value) -> str:
    """The fault in a value that should be empty or `address:count` pairs."""
    return _counts_complaint(str(value).split(","), "address")


def _user_overrides_complaint(value: Value) -> str:
    """The fault in a value that should be empty or `user:count` pairs.

    They are separated by semicolons, because names in certificates contain commas.
    """
    return _counts_complaint(str(value).split(";"), "user")


def _counts_complaint(items: list[str], what: str) -> str:
    for item in items:
        name, _, count = item.strip().rpartition(":")
        if item.strip() and not (name and count.isdecimal()):
            return f"{item.strip()[:100]} is not of the form {what}:count"
    return ""


LISTENERS = Validator("NAME://host:port,...", _listeners_complaint)
PROTOCOL_MAP = Validator("NAME:PROTOCOL,...", _protocols_complaint)
RETENTION = Validator("[1,...] or -1", _retention_complaint)
IDLE_TIME = Validator(f"above {_LOGIN_DELAY_MS} or -1", _idle_complaint)
SHARE = Validator("above 0, at most 1", _share_complaint)
CONNECTION_OVERRIDES = Validator("[address]:[count],...", _overrides_complaint)
USER_OVERRIDES = Validator("[user]:[count];...", _user_overrides_complaint)
GZIP_LEVEL = Validator("[1,...,9] or -1", _gzip_complaint)
THROTTLED_REPLICAS = Validator("* or [partition]:[broker],...", _throttled_complaint)
COMPRESSION_TYPE = one_of("uncompressed", "zstd", "lz4", "snappy", "gzip", "producer")
TIMESTAMP_TYPE = one_of("CreateTime", "LogAppendTime")
# Without a policy everything is kept forever (KIP-1161).
CLEANUP_POLICY = list_of("compact", "delete", may_be_empty=True)


def principals() -> Validator:
    """Return a rule for principals with types, between semicolons: `User:alice;User:bob`."""

    def complaint(value: Value) -> str:
        strange = [part for part in str(value).split(";") if part.strip() and ":" not in part]
        return f"{strange[0].strip()[:100]} has no type; write it as User:alice" if strange else ""

    return Validator("User:name;…", complaint)


_PACKAGE = "org.apache.kafka.coordinator.group.assignor"
CONSUMER_ASSIGNOR_CLASSES = {
    f"{_PACKAGE}.UniformAssignor": "uniform",
    f"{_PACKAGE}.RangeAssignor": "range",
}
SHARE_ASSIGNOR_CLASSES = {f"{_PACKAGE}.SimpleAssignor": "simple"}


def consumer_assignors(names: Iterable[str]) -> tuple[str, ...]:
    """Replace Java classes in `group.consumer.assignors` by assignors' names; drop duplicates."""
    return tuple(dict.fromkeys(CONSUMER_ASSIGNOR_CLASSES.get(name, name) for name in names))


_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE
)
_BY_DURATION = "by_duration:"


@dataclass(frozen=True, slots=True)
class Reset:
    """Where to reset an offset to: the log's end, its start, or a time `back_ms` before now."""

    to_start: bool = False
    back_ms: int | None = None


def parse_reset(text: str) -> Reset:
    """Read the setting: latest, earliest or by_duration:PnDTnHnMn.nS.

    Raises OttlaError (INVALID_CONFIG).
    """
    word = text.strip()
    if word.lower() == "latest":
        return Reset()
    if word.lower() == "earliest":
        return Reset(to_start=True)
    if word.lower().startswith(_BY_DURATION):
        found = _DURATION.fullmatch(word[len(_BY_DURATION) :])
        if found is not None and any(found.groups()) and not word.upper().endswith("T"):
            days, hours, minutes, seconds, fraction = found.groups()
            total_s = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
            millis = int((fraction or "").ljust(3, "0")[:3])
            return Reset(back_ms=(total_s + int(seconds or 0)) * 1_000 + millis)
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {text} for configuration share.auto.offset.reset: it must be latest, "
        "earliest or by_duration:<ISO 8601 duration>, like by_duration:PT1H",
    )


def offset_reset() -> Validator:
    """Return a rule for text that `parse_reset` can read."""
    return Validator("latest, earliest or by_duration:PnDTnHnMn.nS", _reset_complaint)


def _reset_complaint(value: Value) -> str:
    try:
        parse_reset(str(value))
    except OttlaError:
        return "it must be latest, earliest, or by_duration: and a duration like PT1H"
    return ""


def _cores_complaint(value: Value) -> str:
    word = str(value)
    if word in ("", "auto") or (word.isascii() and word.isdecimal() and int(word) > 0):
        return ""
    return "it must be a number of processes, or auto for one per core"


def _host_port_complaint(value: Value) -> str:
    text = str(value)
    _, colon, port = text.rpartition(":")
    if not text or (colon and port.isascii() and port.isdecimal() and int(port) < 65536):
        return ""
    return f"{text[:100]!r} is not of the form host:port"


# The rule for an address to listen on.
HOST_PORT = Validator("[host:port]", _host_port_complaint)

# The rule for `cores`.
CORES = Validator("[auto,1,2,...]", _cores_complaint)
