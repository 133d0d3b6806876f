"""One partition under load in modelled time, and when a record is committed by either rule.

The leader is the shipped core (`replica.leader`), fed with fetches and flushes whose durations
are drawn from a seed; it says what the in-sync replicas have committed. A majority of the same
ends, learnt from the same fetches, gives what a majority would have. All times in milliseconds.
"""

import heapq
import itertools
import random
from collections.abc import Callable
from dataclasses import dataclass, field

from ottla.base.ids import BrokerId, TopicPartition
from ottla.controller.election import Rules, settle
from ottla.metadata.image import PartitionImage
from ottla.replica.effects import AdvanceHighWatermark, LeaderEffect, ProposeIsr
from ottla.replica.leader import Leader
from ottla.replica.registration import Registration
from ottla.replica.term import Term
from verify.quorums.failures import in_sync, majority_of
from verify.walk.log import WalkLog

LAG_MS_MAX = 30_000
SESSION_MS = 3_000
_STORE_MS = 3.0
_LOOK_EVERY_MS = 100.0
_EPOCH = 1
_BROKER_EPOCH = 0


@dataclass(frozen=True, slots=True)
class Scene:
    """What is modelled. If a follower is slow or stops, it is the last one."""

    name: str
    copies: int = 3
    min_isr: int = 2
    every_ms: float = 2.0
    # Of a message one way, at least; and of a flush, in the median.
    way_ms: float = 0.1
    flush_ms: float = 1.0
    # A flush of the one in trouble takes so many times as long.
    slower: float = 1.0
    # One flush in a thousand of each replica takes so much longer.
    hiccup_ms: float = 0.0
    # The one in trouble stands still from then on, so long; past its session it is dead.
    still_at_ms: float = 0.0
    still_ms: float = 0.0


@dataclass(slots=True)
class CommitTimes:
    """Milliseconds from append to commit of each record, by either rule."""

    in_sync: list[float] = field(default_factory=list)
    majority: list[float] = field(default_factory=list)


class Model:
    """Runs one scene. The events of one moment happen in the order in which they were made."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._random = random.Random(seed)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = itertools.count()
        self._log = WalkLog()
        self._log.begin_epoch(_EPOCH)
        self._appended: list[float] = []
        image = in_sync(scene.copies)
        registration = Registration(image.leader, _BROKER_EPOCH, SESSION_MS)
        registration.live = dict.fromkeys(image.replicas, _BROKER_EPOCH)
        self._term = Term(
            TopicPartition("modelled", 0),
            registration,
            image,
            self._log,
            own_end=0,
            high_watermark=0,
            min_isr=scene.min_isr,
            now_ms=0,
        )
        self._leader = Leader(self._term, lag_ms_max=LAG_MS_MAX)
        self._ends = dict.fromkeys(image.replicas, 0)
        self._waiting: dict[BrokerId, int] = {}
        self._flushing = False
        self._nonces = itertools.count(1)
        self._troubled = image.replicas[-1]
        self.outcome = CommitTimes()

    def run(self, records: int) -> CommitTimes:
        """Append so many records, and go on until all are committed by both rules."""
        self._obey(self._leader.begin(now_ms=0))
        for number in range(records):
            self._after(number * self._scene.every_ms, self._append)
        for follower in self._ends:
            if follower != self._term.broker_id:
                self._fetch(follower, 0)
        self._after(_LOOK_EVERY_MS, self._look)
        if self._scene.still_ms > SESSION_MS:
            self._after(self._scene.still_at_ms + SESSION_MS, self._end_session)
        while len(self.outcome.in_sync) < records or len(self.outcome.majority) < records:
            self._now, _, act = heapq.heappop(self._events)
            act()
        return self.outcome

    # ------------------------------------------------------------ the leader's machine

    def _append(self) -> None:
        self._log.append((_EPOCH, len(self._appended)))
        self._leader.on_grown(int(self._now))
        self._appended.append(self._now)
        self._flush()
        for follower, offset in list(self._waiting.items()):
            del self._waiting[follower]
            self._answer(follower, offset)

    def _flush(self) -> None:
        if not self._flushing and self._term.own_end < self._log.log_end_offset:
            self._flushing = True
            end = self._log.log_end_offset
            self._after(self._flush_ms(self._term.broker_id), lambda: self._flushed(end))

    def _flushed(self, end: int) -> None:
        self._flushing = False
        self._note_end(self._term.broker_id, end)
        self._obey(self._leader.on_own_end(end))
        self._flush()

    def _on_fetch(self, follower: BrokerId, offset: int) -> None:
        last_epoch = _EPOCH if offset else -1
        now_ms = int(self._now)
        effects = self._leader.on_follower_fetch(
            follower, _BROKER_EPOCH, next(self._nonces), offset, last_epoch, _EPOCH, now_ms
        )
        self._obey(effects)
        self._note_end(follower, offset)
        if offset < self._log.log_end_offset:
            self._answer(follower, offset)
        else:
            self._waiting[follower] = offset

    def _look(self) -> None:
        self._obey(self._leader.on_deadline(now_ms=int(self._now)))
        self._after(_LOOK_EVERY_MS, self._look)

    # ------------------------------------------------------------ the followers' machines

    def _fetch(self, follower: BrokerId, offset: int) -> None:
        self._after(self._way_ms(), lambda: self._on_fetch(follower, offset))

    def _answer(self, follower: BrokerId, offset: int) -> None:
        end = self._log.log_end_offset
        assert end > offset
        self._after(self._way_ms(), lambda: self._on_records(follower, end))

    def _on_records(self, follower: BrokerId, end: int) -> None:
        waits_ms = self._flush_ms(follower)
        scene = self._scene
        if follower == self._troubled and 0 <= self._now - scene.still_at_ms < scene.still_ms:
            waits_ms += scene.still_at_ms + scene.still_ms - self._now
        self._after(waits_ms, lambda: self._fetch(follower, end))

    # ------------------------------------------------------------ the store and the controller

    def _end_session(self) -> None:
        """The controller removes the stopped follower from the ISR."""
        self._term.registration.live.pop(self._troubled)
        image = self._term.negotiation.committed
        rules = Rules(self._scene.min_isr)
        change = settle(image, self._term.registration.live, rules, cause="a session ended")
        if change is not None:
            self._after(_STORE_MS, lambda: self._tell(change.after))

    def _tell(self, image: PartitionImage) -> None:
        version = self._term.negotiation.committed.version + 1
        told = image._replace(version=version)
        self._obey(self._leader.on_state(told, now_ms=int(self._now)))

    def _obey(self, effects: tuple[LeaderEffect, ...]) -> None:
        for effect in effects:
            if isinstance(effect, AdvanceHighWatermark):
                self._commit(self.outcome.in_sync, effect.high_watermark)
            elif isinstance(effect, ProposeIsr):
                after = effect.change.after
                self._after(_STORE_MS, lambda after=after: self._tell(after))  # type: ignore[misc]

    # ------------------------------------------------------------ both rules

    def _note_end(self, broker: BrokerId, end: int) -> None:
        self._ends[broker] = max(self._ends[broker], end)
        ends = sorted(self._ends.values(), reverse=True)
        self._commit(self.outcome.majority, ends[majority_of(self._scene.copies) - 1])

    def _commit(self, latencies: list[float], end: int) -> None:
        latencies += [self._now - at for at in self._appended[len(latencies) : end]]

    # ------------------------------------------------------------ time and chance

    def _after(self, delay_ms: float, act: Callable[[], None]) -> None:
        heapq.heappush(self._events, (self._now + delay_ms, next(self._order), act))

    def _way_ms(self) -> float:
        return self._scene.way_ms * (1 + self._random.expovariate(1.0))

    def _flush_ms(self, broker: BrokerId) -> float:
        scene = self._scene
        took_ms = scene.flush_ms * self._random.lognormvariate(0.0, 0.3)
        if broker == self._troubled:
            took_ms *= scene.slower
        if self._random.random() < 0.001:
            took_ms += scene.hiccup_ms
        return took_ms
