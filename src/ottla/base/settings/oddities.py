"""Settings of a topic that are each valid, but contradict each other. Pure.

A contradiction within the settings of a new topic is refused. One that comes from a default, or
from a later change, is accepted as in Kafka, with a warning: many scripts set a small
`retention.bytes` beside the default `segment.bytes` of 1 GiB, and `retention.ms=1000` for a
while is how topics are emptied.
"""

from collections.abc import Mapping
from dataclasses import dataclass

MIN_ISR = "min.insync.replicas"
# The settings checked; `retention.…` only if old segments are deleted.
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
    """Settings that contradict each other. `sentence` names the consequence and the remedy."""

    names: tuple[str, ...]
    sentence: str


def oddities(values: Mapping[str, object], replicas: int) -> list[Oddity]:
    """The contradictions among a topic's values of `LOOKED_AT`, with so many replicas."""
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
        found += _above_retention(
            values, "bytes", "so a partition may hold up to segment.bytes more than retention.bytes"
        )
        found += _above_retention(
            values, "ms", "so records may be kept up to segment.ms longer than retention.ms"
        )
    return found


def _above_retention(values: Mapping[str, object], unit: str, consequence: str) -> list[Oddity]:
    segment, retention = f"segment.{unit}", f"retention.{unit}"
    size, kept = _number(values, segment), _number(values, retention)
    if kept < 0 or size <= kept:
        return []
    return [
        Oddity(
            (segment, retention),
            f"{segment}={size} is above {retention}={kept}: only whole segments are deleted, "
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
