"""Changes what brokers log while they run, by area (KIP-412)."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.client.admin import Admin

RESET = "default"


@dataclass(frozen=True, slots=True)
class LoggerLevel:
    """The level of a broker's logger, by Kafka's name: DEBUG, INFO, WARN, ERROR or FATAL."""

    broker_id: int
    logger: str
    level: str | None


async def log_levels(
    admin: Admin, area: str = "", level: str = "", brokers: Sequence[int] = ()
) -> list[LoggerLevel]:
    """Set the level of an area of the code, if `level` is given; return the levels of the area.

    An area is the beginning of a part of a logger's name, such as `replica` or `network`; ""
    means all loggers. `level` may be "default", for the level of the logger above. `brokers` are
    all live brokers if none is named. Raises INVALID_CONFIG if no logger is in the area.
    """
    ids = list(brokers) or [one.broker_id for one in (await admin.cluster.describe()).brokers]
    found: list[LoggerLevel] = []
    for broker_id in ids:
        names = loggers_in(area, await admin.configs.describe("broker_logger", str(broker_id)))
        if not names:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"no logger of broker {broker_id} has a part that begins with {area!r};"
                " `ottla broker log-level` lists them",
            )
        if level:
            value = None if level == RESET else level.upper()
            changes = dict.fromkeys(_topmost(names), value)
            # Levels of their own below would go on to apply.
            changes |= dict.fromkeys(set(names) - changes.keys())
            await admin.configs.alter("broker_logger", str(broker_id), changes)
        levels = await admin.configs.describe("broker_logger", str(broker_id))
        found += [LoggerLevel(broker_id, name, levels[name].value) for name in names]
    return found


def loggers_in(area: str, names: Iterable[str]) -> list[str]:
    """Return the names that have a part which begins with `area`, sorted."""
    return sorted(name for name in names if any(part.startswith(area) for part in name.split(".")))


def _topmost(names: Sequence[str]) -> list[str]:
    return [name for name in names if not any(name.startswith(f"{other}.") for other in names)]
