"""Settings of brokers of which one must not be above the other. Pure."""

from collections.abc import Callable, Iterator

from ottla.base.errors import ErrorCode, OttlaError


def _bounded() -> Iterator[tuple[str, str]]:
    for kind in ("consumer", "share", "streams"):
        for what in ("session.timeout.ms", "heartbeat.interval.ms", "assignment.interval.ms"):
            value = f"group.{kind}.{what}"
            yield f"group.{kind}.min.{what}", value
            yield value, f"group.{kind}.max.{what}"


# (what may not be above, the other), as Kafka checks them when a broker starts.
_ORDERED: tuple[tuple[str, str], ...] = (
    *_bounded(),
    ("group.min.session.timeout.ms", "group.max.session.timeout.ms"),
    ("log.cleaner.min.compaction.lag.ms", "log.cleaner.max.compaction.lag.ms"),
)
# Whoever is heard of so rarely would be taken for dead.
_BELOW: tuple[tuple[str, str], ...] = tuple(
    (f"group.{kind}.heartbeat.interval.ms", f"group.{kind}.session.timeout.ms")
    for kind in ("consumer", "share", "streams")
)


def check_order(names: frozenset[str], value: Callable[[str], object]) -> None:
    """Refuse values that stand in the wrong order, where one of `names` is concerned.

    `value` gives the value of a setting. Raises OttlaError(INVALID_CONFIG).
    """
    for low, high in _ORDERED:
        if (low in names or high in names) and _number(value, low) > _number(value, high):
            raise _refused(low, high, value, "above")
    for low, high in _BELOW:
        if (low in names or high in names) and _number(value, low) >= _number(value, high):
            raise _refused(low, high, value, "not below")


def _number(value: Callable[[str], object], name: str) -> int:
    number = value(name)
    assert isinstance(number, int), name
    return number


def _refused(low: str, high: str, value: Callable[[str], object], word: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{low} = {value(low)} is {word} {high} = {value(high)}; change one of them",
    )
