"""Rules of who is in sync, each broken by itself: what the simulation has to find."""

from collections.abc import Mapping

import pytest

from ottla.base.ids import BrokerId
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.liveness import PauseGuard
from ottla.broker.replication.replica_sessions import ReplicaSessions
from ottla.broker.replication.replication import Replication
from ottla.broker.replication.roles import Roles
from ottla.replica.leader import NOT_FULL, Leader
from ottla.replica.remote import Remote


def idle_time_counts(patch: pytest.MonkeyPatch) -> None:
    """A follower is late by its last fetch, though there was nothing to fetch since (105a32d)."""
    patch.setattr(Leader, "on_grown", lambda *_: None)


def repeats_are_growth(patch: pytest.MonkeyPatch) -> None:
    """A batch that a producer sends again counts as one that followers lack."""

    def on_grown(self: Leader, now_ms: int) -> None:
        full_end, self.full_end = self.full_end, NOT_FULL
        for remote in self.term.remotes.values():
            if remote.end >= full_end != NOT_FULL:
                remote.caught_up_ms = now_ms

    patch.setattr(Leader, "on_grown", on_grown)


def idle_time_is_silence(patch: pytest.MonkeyPatch) -> None:
    """A follower that had nothing to fetch is silent as soon as there is something."""
    patch.setattr(Remote, "silent_since_ms", property(lambda self: self.contact_ms))
    _hear_of_no_other_partition(patch)


def _hear_of_no_other_partition(patch: pytest.MonkeyPatch) -> None:
    on_deadline = Roles.on_deadline

    def look(self: Roles, partition: Partition, _heard: Mapping[BrokerId, int]) -> None:
        on_deadline(self, partition)

    patch.setattr(Roles, "on_deadline", look)


def other_partitions_do_not_count(patch: pytest.MonkeyPatch) -> None:
    """A follower that fetches other partitions is silent about the one its disk is slow with."""
    _hear_of_no_other_partition(patch)


def judges_without_listening(patch: pytest.MonkeyPatch) -> None:
    """A leader that stood still counts the time against its followers."""
    patch.setattr(Replication, "_notice_pause", lambda _: None)


def listens_once(patch: pytest.MonkeyPatch) -> None:
    """A leader that stands still while it listens after a pause does not begin anew (seed 3269)."""
    on_ran = PauseGuard.on_ran

    def ran(self: PauseGuard, now_ms: int) -> None:
        if not self.left_ms():
            on_ran(self, now_ms)
        else:
            self._ran_ms = now_ms

    patch.setattr(PauseGuard, "on_ran", ran)


def idle_followers_are_not_asked(patch: pytest.MonkeyPatch) -> None:
    """That a follower of an idle partition follows is known only by its next fetch (105a32d)."""
    patch.setattr(ReplicaSessions, "report_followed", lambda _: None, raising=False)


def only_looks_see_doubt(patch: pytest.MonkeyPatch) -> None:
    """What was closed in doubt between two looks at the session stays closed (idle seed 3105)."""
    never = property(lambda _: False, lambda _, __: None)
    patch.setattr(Roles, "closed_in_doubt", never, raising=False)
