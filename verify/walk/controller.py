"""The controller of the walk: calls the shipped functions, and writes their decisions."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

from ottla.base.errors import OttlaError
from ottla.base.ids import BrokerId
from ottla.controller import election, reassignment
from ottla.controller.election import Change, How, Rules
from verify.walk.messages import WriteState
from verify.walk.store import WalkStore

CAUSE = "walk"


class Surroundings(Protocol):
    """What a controller sees of the walk's world."""

    store: WalkStore
    min_isr: int
    seen: Counter[str]

    @property
    def nodes(self) -> Mapping[BrokerId, Any]:
        """The brokers, by their ids."""

    def send(self, message: Any) -> None:
        """Put a message on its way."""


class WalkController:
    """One term of a controller. What it knows of brokers may be old; what it writes is checked."""

    def __init__(self, world: Surroundings) -> None:
        self.world = world
        self.epoch = world.store.controller_epoch
        self.min_isr = world.min_isr
        self.live: Mapping[BrokerId, int] = {}
        self.doubtful: Mapping[BrokerId, int] = {}
        self.look()

    def look(self) -> None:
        """See which brokers are alive, and which came back after an unclean stop."""
        self.live = dict(self.world.store.live)
        self.doubtful = dict(self.world.store.doubtful)

    @property
    def rules(self) -> Rules:
        return Rules(self.min_isr)

    def plan(self) -> WriteState | None:
        """The changes to write now."""
        state = self.world.store.state
        cleared = tuple(sorted(self.doubtful.items()))
        if cleared:
            lossy = [broker for broker, _ in cleared]
            change = self.drop_lossy(lossy)
            if change is None:
                for broker, epoch in cleared:
                    if self.world.store.doubtful.get(broker) == epoch:
                        del self.world.store.doubtful[broker]
        elif election.may_recover(state, self.live):
            change = self.recover()
        else:
            change = self.settle()
            if change is None:
                change = reassignment.complete(state, self.live, self.rules)
        return self._write(change, cleared)

    def settle(self) -> Change | None:
        """Adapt leader and ISR to the brokers that are alive."""
        return election.settle(self.world.store.state, self.live, self.rules, cause=CAUSE)

    def drop_lossy(self, lossy: list[BrokerId]) -> Change | None:
        """Handle brokers that came back after an unclean stop."""
        state = self.world.store.state
        return election.lose(state, lossy, self.live, self.rules, cause=CAUSE)

    def recover(self) -> Change | None:
        """Compare the logs of all brokers that were eligible last."""
        nodes = self.world.nodes
        reaches = {
            broker: nodes[broker].log.reach()
            for broker in self.world.store.state.last_known_elr
            if nodes[broker].up and nodes[broker].registration.broker_epoch == self.live.get(broker)
        }
        return election.recover(self.world.store.state, reaches, self.live, cause=CAUSE)

    def prefer(self) -> WriteState | None:
        """Let the first replica lead, if it may."""
        try:
            return self._write(self.preferred(), ())
        except OttlaError:
            return None

    def preferred(self) -> Change:
        """The election of the first replica."""
        live = {b: e for b, e in self.live.items() if b not in self.doubtful}
        return election.prefer(self.world.store.state, live, cause=CAUSE)

    def move(self, wanted: list[BrokerId]) -> WriteState | None:
        """Begin a reassignment."""
        live = {b: e for b, e in self.live.items() if b not in self.doubtful}
        try:
            change = reassignment.begin(self.world.store.state, wanted, live, self.rules)
        except OttlaError:
            return None
        return self._write(change, ())

    def _write(
        self, change: Change | None, cleared: tuple[tuple[BrokerId, int], ...]
    ) -> WriteState | None:
        if change is None:
            return None
        if change.how not in (None, How.NO_LEADER):
            self.world.seen[f"elected: {change.how}"] += 1
        message = WriteState(self.epoch, change.after, cleared)
        self.world.send(message)
        return message
