"""Settings of a topic that make sense one by one, and not together. Pure.

What somebody asks for in so many words is refused where a topic is created. What comes about by
a default, or by a later change, is taken as Kafka takes it, and told: a small `retention.bytes`
beside the default `segment.bytes` of 1 GiB is in many a script, and `retention.ms=1000` for a
while is how topics are emptied.
"""

from collections.abc import Mapping
from dataclasses import dataclass

MIN_ISR = "min.insync.replicas"
# What is looked at; `retention.…` counts only where old segments are deleted.
LOOKED_AT = (
    MIN_ISR,
    "cleanup.policy",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
)


@dataclass(frozen=True, slots=True)
class Oddity:
    """Settings that do not go together. `sentence` says what comes of it, and what helps."""

    names: tuple[str, ...]
    sentence: str


def oddities(values: Mapping[str, object], replicas: int) -> list[Oddity]:
    """What is odd about the values in effect (of `LOOKED_AT`) of a topic with so many replicas."""
    found: list[Oddity] = []
    least = _number(values, MIN_ISR)
    if least > replicas:
        found.append(
            Oddity(
                (MIN_ISR,),
                f"{MIN_ISR}={least} is above the replication factor {replicas}: so many can "
                f"never be in sync. Set it to at most {replicas}, or give the topic more replicas.",
            )
        )
    if "delete" in _policies(values):
        found += _above_retention(values, "bytes", "so a partition holds up to one more")
        found += _above_retention(values, "ms", "so records may stay for one's age longer")
    return found


def _above_retention(values: Mapping[str, object], unit: str, consequence: str) -> list[Oddity]:
    segment, retention = f"segment.{unit}", f"retention.{unit}"
    size, kept = _number(values, segment), _number(values, retention)
    if kept < 0 or size <= kept:
        return []
    return [
        Oddity(
            (segment, retention),
            f"{segment}={size} is above {retention}={kept}: segments are deleted as a whole, "
            f"{consequence}. Set {segment} to at most {kept}, better to a fraction of it.",
        )
    ]


def _number(values: Mapping[str, object], name: str) -> int:
    value = values[name]
    assert isinstance(value, int), name
    return value


def _policies(values: Mapping[str, object]) -> tuple[str, ...]:
    policies = values["cleanup.policy"]
    assert isinstance(policies, tuple)
    return policies
