"""Broker settings that must be consistent with each other. Pure."""

from collections.abc import Callable, Iterator

from ottla.base.errors import ErrorCode, OttlaError


def _bounded() -> Iterator[tuple[str, str]]:
    for kind in ("consumer", "share", "streams"):
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            value = f"group.{kind}.{what}"
            yield f"group.{kind}.min.{what}", value
            yield value, f"group.{kind}.max.{what}"


# (lower, higher): the first may not exceed the second, as Kafka checks at startup.
_ORDERED: tuple[tuple[str, str], ...] = (
    *_bounded(),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("group.share.max.size", "group.share.max.share.sessions"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
)
# A member with a longer heartbeat interval would be considered dead.
_BELOW: tuple[tuple[str, str], ...] = tuple(
    (f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms")
    for kind in ("consumer", "share", "streams")
)


def check_order(names: frozenset[str], value: Callable[[str], object]) -> None:
    """Refuse pairs of values in the wrong order that involve one of `names`.

    `value` returns the value of a setting. Raises OttlaError(INVALID_CONFIG).
    """
    for low, high in _ORDERED:
        if (low in names or high in names) and _number(value, low) > _number(value, high):
            raise _refused(low, high, value, "above")
    for low, high in _BELOW:
        if (low in names or high in names) and _number(value, low) >= _number(value, high):
            raise _refused(low, high, value, "not below")


def check_together(names: frozenset[str], value: Callable[[str], object]) -> None:
    """Refuse inconsistent values that involve one of `names`, as Kafka does.

    Raises OttlaError(INVALID_CONFIG).
    """
    for rule in (_cleaner_memory, _request_memory, _no_connections, _connections, _cordoned):
        complaint = rule(names, value)
        if complaint:
            raise OttlaError(ErrorCode.INVALID_CONFIG, complaint)


def _cleaner_memory(names: frozenset[str], value: Callable[[str], object]) -> str:
    memory, threads = "log.cleaner.dedupe.buffer.size", "log.cleaner.threads"
    if names.isdisjoint((memory, threads)) or _number(value, threads) == 0:
        return ""
    if _number(value, memory) // _number(value, threads) > _CLEANER_BYTES_MIN:
        return ""
    return (
        f"{memory} = {value(memory)} is not above {_CLEANER_BYTES_MIN} for each of {threads} = "
        f"{value(threads)}; raise the first or lower the second"
    )


def _request_memory(names: frozenset[str], value: Callable[[str], object]) -> str:
    memory, largest = "queued.max.request.bytes", "socket.request.max.bytes"
    if names.isdisjoint((memory, largest)):
        return ""
    if _number(value, memory) <= 0 or _number(value, memory) >= _number(value, largest):
        return ""
    return (
        f"{memory} = {value(memory)} is below {largest} = {value(largest)}: one request would not "
        "fit; raise the first or lower the second"
    )


def _no_connections(names: frozenset[str], value: Callable[[str], object]) -> str:
    for name in ("max.connections", "max.connection.creation.rate"):
        if name in names and value(name) == 0:
            return no_connections(name)
    return ""


def no_connections(name: str) -> str:
    """Return why a connection limit of the broker or of a listener may not be 0."""
    return (
        f"Invalid {name} 0: every new connection would be closed, those of brokers and of tools "
        "that change settings, too; set at least 1"
    )


def _connections(names: frozenset[str], value: Callable[[str], object]) -> str:
    most, overrides = "max.connections.per.ip", "max.connections.per.ip.overrides"
    if names.isdisjoint((most, overrides)) or _number(value, most) > 0 or value(overrides):
        return ""
    return f"{most} = 0 lets no one connect; name addresses that may in {overrides}"


def _cordoned(names: frozenset[str], value: Callable[[str], object]) -> str:
    cordoned = value("cordoned.log.dirs")
    if "cordoned.log.dirs" not in names or not isinstance(cordoned, tuple):
        return ""
    folders = value("log.dirs") or value("log.dir")
    assert isinstance(folders, tuple)
    strange = [each for each in cordoned if each not in (*folders, "*")]
    if not strange:
        return ""
    return f"cordoned.log.dirs: {strange[0][:100]} is not among log.dirs ({', '.join(folders)})"


# Kafka's minimum for the key map of each cleaner thread.
_CLEANER_BYTES_MIN = 1 << 20


def _number(value: Callable[[str], object], name: str) -> int:
    number = value(name)
    assert isinstance(number, int), name
    return number


def _refused(low: str, high: str, value: Callable[[str], object], word: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{low} = {value(low)} is {word} {high} = {value(high)}; change one of them",
    )
