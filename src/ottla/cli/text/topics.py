"""Parses topics as people name them: by whole names, or by regular expressions."""

import re
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import click

from ottla.client.connection.cluster import Cluster

Command = TypeVar("Command", bound=Callable[..., Any])


def regex(command: Command) -> Command:
    """`--regex`: the names are regular expressions."""
    return click.option(
        "--regex",
        "-r",
        is_flag=True,
        help="Each name is a regular expression, of all topics whose whole names match.",
    )(command)


async def matching(cluster: Cluster, words: Sequence[str], *, regex: bool) -> list[str]:
    """The topics that `words` name, in that order, each once; with `regex` those that match.

    Raises click.BadParameter for a pattern that is none, or that matches nothing.
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
