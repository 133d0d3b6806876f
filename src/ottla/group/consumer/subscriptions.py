"""Which topics the members of a group read: by name, and by pattern."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any
from uuid import UUID

from ottla.base.patterns import compiled
from ottla.group.model.consumer_group import ConsumerGroup
from ottla.group.values.topics import Sight, TopicShape, TopicsView


@dataclass(frozen=True, slots=True)
class Subscriptions:
    """The existing topics that each member reads.

    `names`: also names that do not exist, and what patterns match whether a member may see it.
    `unheard`: members whose sight is not known yet: of their pattern they read what they have.
    """

    names: frozenset[str]
    shapes: dict[UUID, TopicShape]
    by_member: dict[str, frozenset[UUID]]
    unheard: frozenset[str]


def require_pattern(pattern: str) -> None:
    """Raises OttlaError (INVALID_REGULAR_EXPRESSION) where RE2 cannot read it."""
    _compiled(pattern)


def resolve(group: ConsumerGroup, topics: TopicsView) -> Subscriptions:
    """Look up what every member reads."""
    patterns = {each.topic_regex for each in group.members.values() if each.topic_regex}
    matching = {pattern: _matching(pattern, topics.names()) for pattern in patterns}
    names: set[str] = set()
    shapes: dict[UUID, TopicShape] = {}
    by_member: dict[str, frozenset[UUID]] = {}
    unheard: set[str] = set()
    for member_id, metadata in group.members.items():
        wanted = set(metadata.topic_names)
        if metadata.topic_regex:
            matched = matching[metadata.topic_regex]
            names |= matched
            sight = group.sights.get(member_id)
            if sight is None:
                unheard.add(member_id)
                sight = _sight_of_share(group, member_id, topics)
            wanted.update(name for name in matched if sight(name))
        names |= wanted
        ids = set()
        for name in wanted:
            shape = topics.find(name)
            if shape is not None:
                shapes[shape.id] = shape
                ids.add(shape.id)
        by_member[member_id] = frozenset(ids)
    return Subscriptions(frozenset(names), shapes, by_member, frozenset(unheard))


def _sight_of_share(group: ConsumerGroup, member_id: str, topics: TopicsView) -> Sight:
    """Return the topics that a member was assigned and so may see, as far as is known."""
    held = {topics.name_of(slot.topic_id) for slot in group.target_of(member_id)}
    return lambda name: name in held


def _matching(pattern: str, names: Iterable[str]) -> frozenset[str]:
    """Topics whose whole name matches, internal ones included.

    Only a client that resolves its pattern itself leaves internal topics out.
    """
    found = _compiled(pattern)
    return frozenset(name for name in names if found.fullmatch(name))


@lru_cache(maxsize=64)
def _compiled(pattern: str) -> Any:
    return compiled(pattern, "SubscribedTopicRegex")
