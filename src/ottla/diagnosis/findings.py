"""What the doctor finds in the facts about a cluster: settings, clocks, versions, health. Pure.

An error is something that does not work now. A warning is something that works and will fail, or
loses a promise that users rely on. A note is worth knowing; it is not counted as wrong.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from ottla.base.quantities import size_words, span_words
from ottla.base.settings import TOPIC_SETTINGS
from ottla.base.settings.check import LOOKED_AT, MIN_ISR, oddities
from ottla.diagnosis.health import HealthFinding, Trouble
from ottla.wire.api import key_name


class Severity(StrEnum):
    """How bad a finding is, worst first."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


class Area(StrEnum):
    """What was examined, causes before what follows from them."""

    ADDRESSES = "addresses"
    CLUSTER = "cluster"
    DISKS = "disks"
    PARTITIONS = "partitions"
    CLOCKS = "clocks"
    CERTIFICATES = "certificates"
    SETTINGS = "settings"
    VERSIONS = "versions"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong, its cause and remedy, and the names of what it concerns.

    Sentences lack the full stop.
    """

    severity: Severity
    area: Area
    trouble: str
    cause: str
    remedy: str
    where: tuple[str, ...] = ()


def ordered(found: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return findings worst first; among equals, causes before what follows from them."""
    severities, areas = list(Severity), list(Area)
    return tuple(
        sorted(found, key=lambda one: (severities.index(one.severity), areas.index(one.area)))
    )


_ERRORS = (
    Trouble.DIRECTORY_OFFLINE,
    Trouble.DISK_FULL,
    Trouble.OFFLINE,
    Trouble.UNDER_MIN_ISR,
    Trouble.NO_CONTROLLER,
)
_OF_DISKS = (Trouble.DIRECTORY_OFFLINE, Trouble.DISK_FULL, Trouble.DISK_ALMOST_FULL)


def of_health(found: Iterable[HealthFinding]) -> list[Finding]:
    """Convert the findings of `ottla cluster health`."""
    return [
        Finding(
            Severity.ERROR if one.trouble in _ERRORS else Severity.WARNING,
            Area.DISKS
            if one.trouble in _OF_DISKS
            else Area.CLUSTER
            if one.trouble is Trouble.NO_CONTROLLER
            else Area.PARTITIONS,
            one.trouble,
            one.cause,
            one.remedy,
            tuple(map(str, one.partitions)),
        )
        for one in found
    ]


# -- clocks

_APART_MS = 1000
_FAR_APART_MS = 60_000


@dataclass(frozen=True, slots=True)
class ClockOffset:
    """How far a clock is ahead of this machine's, in ms, and how exactly that is known."""

    offset_ms: float
    error_ms: float


def of_clocks(offsets: Mapping[int, ClockOffset]) -> list[Finding]:
    """Report brokers whose clocks differ, from each other or all of them from this machine's."""
    if not offsets:
        return []
    middle = sorted(one.offset_ms for one in offsets.values())[len(offsets) // 2]
    odd = {
        broker: one.offset_ms - middle
        for broker, one in offsets.items()
        if abs(one.offset_ms - middle) > _APART_MS + 2 * one.error_ms
    }
    found = [
        _clock(f"broker {broker}", "the other brokers'", apart_ms)
        for broker, apart_ms in odd.items()
    ]
    if abs(middle) > _APART_MS + min(one.error_ms for one in offsets.values()):
        found.append(_clock("this machine", "the brokers'", -middle))
    return found


def _clock(whose: str, others: str, apart_ms: float) -> Finding:
    way = "ahead of" if apart_ms > 0 else "behind"
    return Finding(
        Severity.ERROR if abs(apart_ms) > _FAR_APART_MS else Severity.WARNING,
        Area.CLOCKS,
        "clocks apart",
        f"the clock of {whose} is {span_words(round(abs(apart_ms)))} {way} {others}: retention,"
        " offsets by time, tokens and certificates go by it",
        f"let chrony or systemd-timesyncd run on the machine of {whose}",
        (whose,),
    )


# -- versions

Served = Mapping[int, tuple[int, int]]


def of_versions(served: Mapping[int, Served], usable: Mapping[int, Iterable[int]]) -> list[Finding]:
    """Compare the versions that brokers serve.

    `served` maps brokers to the first and last version of each API, `usable` to the APIs of this
    client that the broker lacks.
    """
    found = []
    differing = sorted(
        key
        for key in {key for apis in served.values() for key in apis}
        if len({apis.get(key) for apis in served.values()}) > 1
    )
    if differing:
        key = differing[0]
        examples = ", ".join(
            f"broker {broker} {_range(apis.get(key))}" for broker, apis in sorted(served.items())
        )
        found.append(
            Finding(
                Severity.WARNING,
                Area.VERSIONS,
                "brokers of different versions",
                f"they serve other versions of {len(differing)} APIs; {key_name(key)}: {examples}",
                "finish the upgrade: clients may lose an API when a leader moves",
                tuple(map(key_name, differing)),
            )
        )
    lacking = {broker: tuple(keys) for broker, keys in usable.items() if tuple(keys)}
    if lacking:
        keys = sorted({key for missing in lacking.values() for key in missing})
        found.append(
            Finding(
                Severity.ERROR,
                Area.VERSIONS,
                "client and broker too far apart",
                f"they share no version of {', '.join(map(key_name, keys))}",
                "upgrade the older of the two",
                tuple(f"broker {broker}" for broker in sorted(lacking)),
            )
        )
    return found


def _range(versions: tuple[int, int] | None) -> str:
    return "none" if versions is None else f"{versions[0]} to {versions[1]}"


# -- settings

# Settings that all brokers should have alike: else it depends on the broker what happens.
ALIKE = (
    "auto.create.topics.enable",
    "compression.type",
    "default.replication.factor",
    "group.max.session.timeout.ms",
    "group.min.session.timeout.ms",
    "log.cleanup.policy",
    "log.retention.bytes",
    "log.retention.ms",
    "log.segment.bytes",
    "message.max.bytes",
    MIN_ISR,
    "num.partitions",
    "offsets.retention.minutes",
    "transaction.max.timeout.ms",
    "unclean.leader.election.enable",
)
OF_BROKERS = (
    *ALIKE,
    "replica.fetch.max.bytes",
    "replica.fetch.wait.max.ms",
    "replica.lag.time.max.ms",
    "socket.request.max.bytes",
    "group.consumer.heartbeat.interval.ms",
    "group.consumer.session.timeout.ms",
    "transactional.id.expiration.ms",
)
# The defaults differ by the overhead of a batch in the log.
_OVERHEAD = 12
_UNCLEAN = "unclean.leader.election.enable"
_MESSAGE = "max.message.bytes"
OF_TOPICS = (*LOOKED_AT, _UNCLEAN, _MESSAGE)

Values = Mapping[str, str | None]


def of_brokers(configs: Mapping[int, Values]) -> list[Finding]:
    """Report settings of brokers that differ, or contradict each other within a broker."""
    found = []
    for name in ALIKE:
        values = {broker: config.get(name) for broker, config in sorted(configs.items())}
        if len(set(values.values())) > 1:
            shown = ", ".join(f"broker {broker} {value}" for broker, value in values.items())
            found.append(
                _setting(
                    f"{name} differs between brokers: {shown}",
                    f"give all brokers the same: `ottla config set broker all {name}=VALUE`, or"
                    " their files",
                    [name],
                )
            )
    seen: dict[tuple[str, str], list[str]] = {}
    for broker, config in sorted(configs.items()):
        for cause, remedy in _within_broker(config):
            seen.setdefault((cause, remedy), []).append(f"broker {broker}")
    return found + [_setting(cause, remedy, where) for (cause, remedy), where in seen.items()]


def _within_broker(config: Values) -> Iterable[tuple[str, str]]:
    factor, least = _number(config, "default.replication.factor"), _number(config, MIN_ISR)
    if factor is not None and least is not None and least > factor:
        yield (
            f"{MIN_ISR}={least} is above default.replication.factor={factor}: a topic that is"
            " created with the defaults can lose no replica, and Kafka before 4.0 refuses acks=all",
            f"set default.replication.factor to at least {least}",
        )
    for small, large, why in (
        ("replica.fetch.wait.max.ms", "replica.lag.time.max.ms", "idle followers leave the ISR"),
        (
            "group.min.session.timeout.ms",
            "group.max.session.timeout.ms",
            "no session timeout of a consumer is accepted",
        ),
        (
            "group.consumer.heartbeat.interval.ms",
            "group.consumer.session.timeout.ms",
            "members expire between two heartbeats",
        ),
        (
            "transaction.max.timeout.ms",
            "transactional.id.expiration.ms",
            "an id may be forgotten during its transaction",
        ),
        ("message.max.bytes", "socket.request.max.bytes", "the largest batches are refused"),
    ):
        low, high = _number(config, small), _number(config, large)
        if low is not None and high is not None and low >= high:
            yield f"{small}={low} is not below {large}={high}: {why}", f"lower {small}"


def of_topics(
    topics: Mapping[str, tuple[int, Values]], broker: Values, brokers: int
) -> list[Finding]:
    """Report topics whose settings contradict each other or those of a broker.

    `topics` maps names to the replication factor and the effective settings.
    """
    seen: dict[tuple[Severity, str, str], list[str]] = {}
    for name, (replicas, settings) in sorted(topics.items()):
        for severity, cause, remedy in _within_topic(replicas, settings, broker, brokers):
            seen.setdefault((severity, cause, remedy), []).append(name)
    return [
        Finding(severity, Area.SETTINGS, "settings at odds", cause, remedy, tuple(where))
        for (severity, cause, remedy), where in seen.items()
    ]


def _within_topic(
    replicas: int, settings: Values, broker: Values, brokers: int
) -> Iterable[tuple[Severity, str, str]]:
    if all(settings.get(name) is not None for name in LOOKED_AT):
        values = {name: TOPIC_SETTINGS[name].parse(settings[name] or "") for name in LOOKED_AT}
        for oddity in oddities(values, replicas):
            cause, _, remedy = oddity.sentence.rstrip(".").partition(". ")
            yield Severity.WARNING, cause, remedy
    least = _number(settings, MIN_ISR)
    if least is not None and 1 < least == replicas:
        yield (
            Severity.WARNING,
            f"{MIN_ISR}={least} is the replication factor: acks=all is refused during each restart"
            " of a broker",
            f"set it to {least - 1}, or give the topic another replica",
        )
    if least is not None and 1 < least <= replicas and settings.get(_UNCLEAN) == "true":
        yield (
            Severity.WARNING,
            f"{_UNCLEAN}=true takes back what acks=all with {MIN_ISR}={least} promises: an"
            " election may lose acknowledged records",
            f"unset {_UNCLEAN}, and elect by hand when all else is lost",
        )
    if replicas == 1 < brokers:
        yield (
            Severity.NOTE,
            f"one replica, though there are {brokers} brokers: while its broker is down the"
            " partition is, too, and its disk may lose it",
            f"`ottla partition plan TOPIC --replicas {min(3, brokers)}`",
        )
    yield from _against_broker(settings, broker)


def _against_broker(settings: Values, broker: Values) -> Iterable[tuple[Severity, str, str]]:
    largest = _number(settings, _MESSAGE)
    request, fetch = (
        _number(broker, "socket.request.max.bytes"),
        _number(broker, "replica.fetch.max.bytes"),
    )
    if largest is not None and request is not None and largest >= request:
        yield (
            Severity.WARNING,
            f"{_MESSAGE}={largest} is not below the brokers' socket.request.max.bytes={request}:"
            " the largest batches are refused",
            f"lower {_MESSAGE}, or raise socket.request.max.bytes",
        )
    if largest is not None and fetch is not None and largest > fetch + _OVERHEAD:
        yield (
            Severity.NOTE,
            f"{_MESSAGE} is {size_words(largest)} and the brokers' replica.fetch.max.bytes"
            f" {size_words(fetch)}: followers fetch each larger batch alone, which is slower",
            "raise replica.fetch.max.bytes to it",
        )
    minutes, kept_ms = (
        _number(broker, "offsets.retention.minutes"),
        _number(settings, "retention.ms"),
    )
    if (
        minutes is not None
        and kept_ms is not None
        and settings.get("cleanup.policy") == "delete"
        and (kept_ms < 0 or kept_ms > minutes * 60_000)
    ):
        kept = "for ever" if kept_ms < 0 else f"for {span_words(kept_ms)}"
        yield (
            Severity.NOTE,
            f"records are kept {kept}, the offsets of a group that stopped only for"
            f" {span_words(minutes * 60_000)} (offsets.retention.minutes): a group that comes back"
            " later begins anew",
            "raise offsets.retention.minutes if groups stop for so long",
        )


def _setting(cause: str, remedy: str, where: list[str]) -> Finding:
    return Finding(Severity.WARNING, Area.SETTINGS, "settings at odds", cause, remedy, tuple(where))


def _number(values: Values, name: str) -> int | None:
    text = values.get(name)
    try:
        return None if text is None else int(text)
    except ValueError:
        return None
