"""Rules of ACLs and users that change, each broken by itself."""

import pytest

from ottla.broker.configs.changes import ConfigChanges
from ottla.broker.login.users import ScramUsers
from ottla.metadata import paths
from ottla.security.authorizer import Authorizer
from ottla.testing.simulation.machine.store import SimulatedStore


def notifications_are_lost(patch: pytest.MonkeyPatch) -> None:
    """Every second change of `/config/changes` is not reported to a broker."""
    pass_on = SimulatedStore._pass_on
    heard: dict[SimulatedStore, int] = {}

    def lossy(self, changes):
        if paths.CONFIG_CHANGES in changes.children:
            heard[self] = heard.get(self, 0) + 1
            if heard[self] % 2 == 0:
                return
        pass_on(self, changes)

    patch.setattr(SimulatedStore, "_pass_on", lossy)


def users_are_read_at_the_start_only(patch: pytest.MonkeyPatch) -> None:
    """A broker goes on by the users that it began with, and by those that it changed itself."""
    patch.setattr(ScramUsers, "before", lambda _self, others: others)


def decisions_outlive_rules(patch: pytest.MonkeyPatch) -> None:
    """What was decided once is remembered though the rules have changed."""

    def forget(self):
        self.version += 1

    patch.setattr(Authorizer, "_forget", forget)


def connections_outlive_rules(patch: pytest.MonkeyPatch) -> None:
    """What a connection learned for its fast path goes on when the rules change."""

    def forget(self):
        self._decided = {}

    patch.setattr(Authorizer, "_forget", forget)


def what_came_while_away_is_lost(patch: pytest.MonkeyPatch) -> None:
    """A broker that reaches the store again is not notified of settings that changed meanwhile."""
    on_changes = SimulatedStore.on_changes

    def forgetful(self, changes):
        away = not self._line_faults.reachable(self._name)
        if not (away and paths.CONFIG_CHANGES in changes.children):
            on_changes(self, changes)

    patch.setattr(SimulatedStore, "on_changes", forgetful)


def missed_notices_are_not_noticed(patch: pytest.MonkeyPatch) -> None:
    """A notice that another broker's clock called old before it was read is missed for ever."""

    async def nothing(self):
        _, version = await deleted(self)
        return "", version

    deleted = ConfigChanges._deleted
    patch.setattr(ConfigChanges, "_deleted", nothing)
