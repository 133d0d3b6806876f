"""Rules of groups, each broken by itself (S28)."""

from collections.abc import Sequence
from typing import Any

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.coordinators import shard
from ottla.broker.groups.shard import GroupShard
from ottla.group.coordinator.coordinator import GroupCoordinator
from ottla.group.offsets import commit


def _allow(patch: pytest.MonkeyPatch, refused: ErrorCode) -> None:
    validate = commit.validate_commit

    def judge(*arguments: Any) -> ErrorCode:
        code = validate(*arguments)
        return ErrorCode.NONE if code is refused else code

    patch.setattr(commit, "validate_commit", judge)


def generations_do_not_matter(patch: pytest.MonkeyPatch) -> None:
    """A member may commit in whatever generation."""
    _allow(patch, ErrorCode.ILLEGAL_GENERATION)


def strangers_may_commit(patch: pytest.MonkeyPatch) -> None:
    """Who is out of the group may commit for it."""
    _allow(patch, ErrorCode.UNKNOWN_MEMBER_ID)


def coordinators_begin_anew(patch: pytest.MonkeyPatch) -> None:
    """Who becomes coordinator does not read what the one before it wrote."""

    async def nothing(self: GroupShard) -> GroupCoordinator:
        return self.empty()

    patch.setattr(GroupShard, "replayed", nothing)


def answers_do_not_wait(patch: pytest.MonkeyPatch) -> None:
    """A coordinator answers before its record is committed."""

    def give(replies: Sequence[Any], *_: Any) -> None:
        replies.give(replies)

    patch.setattr(shard, "give_when_committed", give)
