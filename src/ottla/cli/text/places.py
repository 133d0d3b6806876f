"""Parses topics and partitions: `flights-0`, or `flights` for all partitions of a topic."""

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

import click

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin
from ottla.client.common.errors import unknown_topic
from ottla.client.connection.cluster import Cluster

METAVAR = "TOPIC-P…"


def place(text: str) -> TopicPartition:
    """Parse a partition such as `flights-0`: the type of an argument. Raises click.BadParameter."""
    topic, dash, number = text.rpartition("-")
    if not dash or not topic or not number.isdecimal():
        raise click.BadParameter(
            f"{text!r} is no partition; write topic, dash and number, such as flights-0"
        )
    return TopicPartition(topic, int(number))


async def named(admin: Admin, words: Sequence[str]) -> list[TopicPartition]:
    """Return the partitions that `words` name, in that order, without duplicates.

    Raises UnknownTopic and UNKNOWN_TOPIC_OR_PARTITION; INVALID_REQUEST if a word is the name of a
    topic and also of another topic's partition.
    """
    counts = {view.name: len(view.partitions) for view in await admin.topics.all(internal=True)}
    found: list[TopicPartition] = []
    for word in words:
        found += _named(word, counts)
    return list(dict.fromkeys(found))


def _named(word: str, counts: dict[str, int]) -> Iterable[TopicPartition]:
    topic, _, number = word.rpartition("-")
    is_partition = number.isdecimal() and topic in counts
    if word in counts:
        if is_partition and int(number) < counts[topic]:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST,
                f"{word} is a topic, and a partition of {topic}; name the partitions of the topic "
                f"one by one, such as {word}-0",
            )
        return [TopicPartition(word, index) for index in range(counts[word])]
    if not is_partition:
        raise unknown_topic(topic if number.isdecimal() and topic else word, counts)
    if int(number) >= counts[topic]:
        raise OttlaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            f"topic {topic!r} has partitions 0 to {counts[topic] - 1}, not {number}",
        )
    return [TopicPartition(topic, int(number))]


def broker_list(text: str) -> tuple[int, ...]:
    """Parse `1,2,3`: the type of an option. Raises click.BadParameter."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isdecimal() for part in parts):
        raise click.BadParameter(f"{text!r} is no list of broker ids; write 1,2,3")
    return tuple(int(part) for part in parts)


def few(names: Iterable[object], most: int = 5) -> str:
    """Return the first `most` names, and the number of further names."""
    every = [str(name) for name in names]
    more = f" and {len(every) - most:,} more" if len(every) > most else ""
    return ", ".join(every[:most]) + more


Command = TypeVar("Command", bound=Callable[..., Any])


def regex(command: Command) -> Command:
    """Add `--regex`: names are regular expressions."""
    return click.option(
        "--regex",
        "-r",
        is_flag=True,
        help="Each name is a regular expression, of all topics whose whole names match.",
    )(command)


async def matching(cluster: Cluster, words: Sequence[str], *, regex: bool) -> list[str]:
    """Return the topics that `words` name or, with `regex`, match; in order, without duplicates.

    Raises click.BadParameter for an invalid pattern, or one that matches no topic.
    """
    if not regex:
        return list(dict.fromkeys(words))
    names = sorted(await cluster.topic_names())
    found: list[str] = []
    for word in words:
        try:
            pattern = re.compile(word)
        except re.error as error:
            raise click.BadParameter(f"{word!r} is no regular expression: {error}") from None
        matched = [name for name in names if pattern.fullmatch(name)]
        if not matched:
            raise click.BadParameter(f"no topic's whole name matches {word!r}")
        found += matched
    return list(dict.fromkeys(found))
