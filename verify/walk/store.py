"""The store of the walk: one partition's state, registrations, the controller epoch."""

from collections.abc import Callable

from ottla.base.ids import BrokerId
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.replica.isr import IsrChange, Rejection
from verify.walk.messages import WriteIsr, WriteState
from verify.walk.violation import Violation


class WalkStore:
    """Linearizable; every change is a compare-and-set on versions (R-5)."""

    def __init__(self, state: PartitionImage, on_change: Callable[[], None]) -> None:
        self.state = state
        self.controller_epoch = 1
        # Broker epochs stay; `live` are those with a session.
        self.epochs: dict[BrokerId, int] = {}
        self.live: dict[BrokerId, int] = {}
        # Registrations after an unclean stop, until the controller has dealt with them.
        self.doubtful: dict[BrokerId, int] = {}
        self.leaders: dict[int, BrokerId] = {}
        self._on_change = on_change
        self._writes = 0

    def register(self, broker_id: BrokerId, *, lossy: bool) -> int:
        """A new session; whatever was before has ended."""
        epoch = self.epochs.get(broker_id, 0) + 1
        self.epochs[broker_id] = self.live[broker_id] = epoch
        if lossy or broker_id in self.doubtful:
            self.doubtful[broker_id] = epoch
        return epoch

    def expire(self, broker_id: BrokerId) -> None:
        """A session has ended."""
        self.live.pop(broker_id, None)

    def write_isr(self, message: WriteIsr) -> int | Rejection:
        """A leader's change: the version it made, or why it was not made."""
        rejection = self.judge(message)
        if rejection is not None:
            return rejection
        change = message.change
        self._put(change.committed(self.state.version + 1))
        return self.state.version

    def judge(self, message: WriteIsr) -> Rejection | None:
        """Why a leader's change cannot be made."""
        change: IsrChange = message.change
        if message.controller_epoch != self.controller_epoch:
            return Rejection.CONTROLLER_MOVED
        if change.after.version != self.state.version:
            return Rejection.OUTDATED
        if any(self.live.get(broker) != epoch for broker, epoch in change.joining):
            return Rejection.INELIGIBLE
        return None

    def write_state(self, message: WriteState) -> bool:
        """A controller's change."""
        if not self.allows(message):
            return False
        self._writes += 1
        self._put(message.after._replace(version=self.state.version + 1, nonce=-self._writes))
        for broker, epoch in message.cleared:
            if self.doubtful.get(broker) == epoch:
                del self.doubtful[broker]
        return True

    def allows(self, message: WriteState) -> bool:
        """Whether a controller's change can be made."""
        return (
            message.controller_epoch == self.controller_epoch
            and message.after.version == self.state.version
        )

    def _put(self, state: PartitionImage) -> None:
        before = self.state
        self.state = state
        if state.leader_epoch < before.leader_epoch:
            raise Violation("the leader epoch went back")
        led = state.leader != NO_LEADER
        if led and self.leaders.setdefault(state.leader_epoch, state.leader) != state.leader:
            raise Violation(f"two leaders in epoch {state.leader_epoch}")
        self._on_change()
