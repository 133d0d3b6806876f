"""A partition led by 1 and followed by 2 and 3, for tests of the cores."""

from collections.abc import Sequence
from typing import TypeVar

from verify.walk.log import WalkLog

from ottla.base.ids import BrokerId, TopicPartition
from ottla.metadata.decisions import Decision
from ottla.metadata.image import PartitionImage
from ottla.replica.effects import FollowerEffect, LeaderEffect, ProposeIsr
from ottla.replica.follower import Follower
from ottla.replica.isr import IsrChange
from ottla.replica.leader import NOT_FULL, Leader
from ottla.replica.registration import Registration
from ottla.replica.term import Term

E = TypeVar("E", bound=LeaderEffect | FollowerEffect)
PARTITION = TopicPartition("flights", 0)
ONE, TWO, THREE = BrokerId(1), BrokerId(2), BrokerId(3)
LAG_MS = 30_000
EPOCH = 5
BROKER_EPOCH = 7


def log_of(epochs: Sequence[int]) -> WalkLog:
    """A log with one record for each epoch given."""
    log = WalkLog()
    for value, epoch in enumerate(epochs):
        log.append((epoch, value))
    return log


def image(
    isr: tuple[BrokerId, ...] = (ONE, TWO, THREE), *, leader: BrokerId = ONE, version: int = 4
) -> PartitionImage:
    return PartitionImage(
        leader, EPOCH, (ONE, TWO, THREE), isr, version, leader_broker_epoch=BROKER_EPOCH
    )


def leader(
    log: WalkLog,
    isr: tuple[BrokerId, ...] = (ONE, TWO, THREE),
    *,
    state: PartitionImage | None = None,
    own_end: int | None = None,
    high_watermark: int = 0,
    min_isr: int = 1,
    silence_ms: int | None = None,
) -> Leader:
    """Epoch 5 begins at the end of `log`; both others are alive at broker epoch 7."""
    registration = Registration(ONE, BROKER_EPOCH, 3000)
    registration.live = {ONE: BROKER_EPOCH, TWO: BROKER_EPOCH, THREE: BROKER_EPOCH}
    log.begin_epoch(EPOCH)
    term = Term(
        PARTITION,
        registration,
        state or image(isr),
        log,
        own_end=log.log_end_offset if own_end is None else own_end,
        high_watermark=high_watermark,
        min_isr=min_isr,
        now_ms=0,
    )
    return Leader(term, lag_ms_max=LAG_MS, silence_ms_max=silence_ms)


class Fetches:
    """Fetches of followers as they would come, each with the next nonce."""

    def __init__(self, target: Leader) -> None:
        self.leader = target
        self.nonce = 0

    def __call__(
        self,
        broker: BrokerId,
        offset: int,
        *,
        last_epoch: int | None = None,
        now_ms: int = 0,
        epoch: int = EPOCH,
        broker_epoch: int = BROKER_EPOCH,
    ) -> tuple[LeaderEffect, ...]:
        """`last_epoch` is that of our own record before `offset` unless given."""
        if last_epoch is None:
            log = self.leader.term.log
            last_epoch = log.epochs.epoch_of(offset - 1)  # type: ignore[attr-defined]
        self.nonce += 1
        return self.leader.on_follower_fetch(
            broker, broker_epoch, self.nonce, offset, last_epoch, epoch, now_ms
        )


def append(target: Leader, count: int, *, now_ms: int = 0) -> tuple[LeaderEffect, ...]:
    """The leader appends `count` records of its term."""
    log = target.term.log
    assert isinstance(log, WalkLog)
    for _ in range(count):
        log.append((EPOCH, log.log_end_offset))
    if target.full_end != NOT_FULL:
        target.on_grown(now_ms)
    return target.on_own_end(log.log_end_offset)


def follower(log: WalkLog, *, high_watermark: int = 0) -> Follower:
    """Broker 2 follows 1 in epoch 5."""
    registration = Registration(TWO, BROKER_EPOCH, 3000)
    return Follower(
        PARTITION, registration, image(), log, high_watermark=high_watermark, retry_ms=1000
    )


def change_in(effects: Sequence[LeaderEffect]) -> IsrChange:
    """The one proposal among effects."""
    (proposal,) = [effect for effect in effects if isinstance(effect, ProposeIsr)]
    return proposal.change


def decision_in(effects: Sequence[LeaderEffect | FollowerEffect]) -> Decision:
    """The one decision among effects."""
    (decision,) = [effect for effect in effects if isinstance(effect, Decision)]
    return decision


def without_decisions(effects: Sequence[E]) -> list[E]:
    """What is to be done, without the reasons."""
    return [effect for effect in effects if not isinstance(effect, Decision)]
