"""Metrics and their samples, and Prometheus' text format.

A broker with a thousand partitions has over ten thousand samples. So there is no object for each: a
family has its values in a list, and metrics of the same things share the list of their labels.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

# Lines that are written before the loop gets its turn.
_LINES: Final = 1_000


class SampleKind(StrEnum):
    """Whether a metric only grows."""

    COUNTER = "counter"
    GAUGE = "gauge"


@dataclass(frozen=True, slots=True, eq=False)
class Metric:
    """One metric: its name, kind, description and the names of its labels."""

    name: str
    kind: SampleKind
    help: str
    labels: tuple[str, ...] = ()


class Labels:
    """The labels of a sample: `pairs` by name, and `text` as Prometheus writes them."""

    __slots__ = ("pairs", "text")

    def __init__(self, names: Iterable[str], values: Iterable[object]) -> None:
        self.pairs = dict(zip(names, map(str, values), strict=True))
        inner = ",".join(f'{name}="{_escaped(value)}"' for name, value in self.pairs.items())
        self.text = f"{{{inner}}}" if inner else ""


NO_LABELS: Final = Labels((), ())


@dataclass(slots=True)
class Family:
    """A metric and its samples: `values`, each with the labels at the same place of `labels`."""

    metric: Metric
    labels: list[Labels] = field(default_factory=list)
    values: list[float] = field(default_factory=list)


def exposition(families: Sequence[Family]) -> Iterator[bytes]:
    """Yield the families in Prometheus' text format, in pieces of at most some thousand lines."""
    for family in families:
        metric, labels, values = family.metric, family.labels, family.values
        if not values:
            continue
        name = metric.name
        yield f"# HELP {name} {metric.help}\n# TYPE {name} {metric.kind}\n".encode()
        for first in range(0, len(values), _LINES):
            last = first + _LINES
            some = zip(labels[first:last], values[first:last], strict=True)
            yield "".join([f"{name}{at.text} {value}\n" for at, value in some]).encode()


def _escaped(value: str) -> str:
    if value.isalnum():
        return value
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    # Text that is no UTF-8 would make the whole answer unreadable.
    return escaped.encode("utf-8", "replace").decode()
