"""A broker of the walk: the shell around the cores, as thin as it can be."""

from typing import TYPE_CHECKING

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId, TopicPartition
from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.replica import effects as effect
from ottla.replica.follower import NO_FETCH, Follower
from ottla.replica.leader import NOT_FULL, Leader
from ottla.replica.registration import FOR_EVER, Registration
from ottla.replica.term import Term
from ottla.replica.transition import Transition, transition
from verify.walk import messages
from verify.walk.log import WalkLog
from verify.walk.messages import (
    FetchedRecords,
    FollowerFetch,
    Parting,
    ReadAnswer,
    ReadRequest,
    Refused,
    State,
    WriteIsr,
    WriteOutcome,
)
from verify.walk.watch import PunctualWatch

if TYPE_CHECKING:
    from verify.walk.world import WalkWorld

PARTITION = TopicPartition("walk", 0)
SESSION_MS = 100
LAG_MS_MAX = 60
FETCH_RECORDS = 3


class WalkNode:
    """One broker with one partition. `log`, `high_watermark` survive; the role does not."""

    term_class: type[Term] = Term
    leader_class: type[Leader] = Leader
    follower_class: type[Follower] = Follower

    def __init__(self, world: "WalkWorld", broker_id: BrokerId) -> None:
        self.world = world
        self.id = broker_id
        self.log = WalkLog()
        self.up = True
        self.role: Leader | Follower | None = None
        self.leader_epoch = -1
        self.version = -1
        # As its checkpoint has it while there is no role.
        self.saved_high_watermark = 0
        # A power cut took records, or may have, and the registration has not said so yet.
        self.lossy = False
        self.controller_epoch = 0
        self.min_isr = world.min_isr
        # The watch of its leader epoch, where it leads and the world is punctual.
        self.watch: PunctualWatch | None = None
        self.register()

    # ------------------------------------------------------------ registration, crashes

    def register(self) -> None:
        """Begin a session: a new broker epoch, and no role from the last one."""
        self.drop_role()
        epoch = self.world.store.register(self.id, lossy=self.lossy)
        self.lossy = False
        self.registration = Registration(self.id, epoch, SESSION_MS)
        self.registration.live = dict(self.world.store.live)
        self.leader_epoch = self.version = -1

    def drop_role(self) -> None:
        """Neither lead nor follow."""
        self.saved_high_watermark = min(self.high_watermark, self.log.log_end_offset)
        self.role = None
        self.watch = None

    def crash(self, high_watermark: int, keep: int | None) -> None:
        """Die with a checkpoint of that high watermark; a power cut keeps only `keep` records."""
        self.drop_role()
        self.up = False
        if keep is not None:
            assert keep >= self.log.synced_end
            self.log.truncate_to(keep)
            self.lossy = True
        self.saved_high_watermark = min(high_watermark, self.log.log_end_offset)

    def restart(self) -> None:
        """Come back with what the disk has."""
        self.up = True
        self.log.recover()
        if self.lossy:
            self.log.sync()
        self.register()

    def doubt_session(self) -> None:
        """The store has not answered for a while."""
        self.registration.confirmed_until_ms = self.world.now_ms

    def confirm_session(self) -> None:
        """The store has renewed the session."""
        self.registration.confirmed_until_ms = FOR_EVER

    # ------------------------------------------------------------ what it has

    @property
    def high_watermark(self) -> int:
        role = self.role
        if role is None:
            return self.saved_high_watermark
        return role.term.high_watermark if isinstance(role, Leader) else role.high_watermark

    @property
    def durable_end(self) -> int:
        """What counts as held."""
        return self.log.synced_end if self.world.group_commit else self.log.log_end_offset

    def sync(self) -> None:
        """Flush the log to the disk (fsync)."""
        self.log.sync()
        if self.world.group_commit and isinstance(self.role, Leader):
            self.carry(self.role.on_own_end(self.durable_end))

    # ------------------------------------------------------------ as the controller says

    def on_state(self, message: State) -> None:
        """LeaderAndIsr."""
        if message.broker_epoch != self.registration.broker_epoch:
            return
        if message.controller_epoch < self.controller_epoch:
            return
        self.controller_epoch = message.controller_epoch
        self.follow_state(message.image)

    def follow_state(self, image: PartitionImage) -> None:
        """Take the role that a state gives."""
        now_ms = self.world.now_ms
        what = transition(
            self.id, self.registration.broker_epoch, self.leader_epoch, self.version, image
        )
        if what is Transition.IGNORE:
            return
        if what is Transition.UPDATE:
            if isinstance(self.role, Leader):
                self.carry(self.role.on_state(image, now_ms=now_ms))
        else:
            self.drop_role()
            if what is Transition.LEAD:
                self.lead(image)
            elif what is Transition.FOLLOW:
                self.follow(image)
            elif what is Transition.LEAVE:
                self.log = WalkLog()
                self.saved_high_watermark = 0
        self.leader_epoch = image.leader_epoch
        self.version = image.version

    def lead(self, image: PartitionImage) -> None:
        """Begin a term."""
        now_ms = self.world.now_ms
        self.log.begin_epoch(image.leader_epoch)
        term = self.term_class(
            PARTITION,
            self.registration,
            image,
            self.log,
            own_end=self.durable_end,
            high_watermark=self.saved_high_watermark,
            min_isr=self.min_isr,
            now_ms=now_ms,
        )
        role = self.leader_class(term, lag_ms_max=LAG_MS_MAX, silence_ms_max=self.world.silence_ms)
        self.role = role
        if self.world.is_punctual:
            self.watch = PunctualWatch(role, now_ms)
        self.carry(role.begin(now_ms=now_ms))

    def follow(self, image: PartitionImage) -> None:
        """Follow the leader of the state."""
        assert image.leader != NO_LEADER
        self.role = self.follower_class(
            PARTITION,
            self.registration,
            image,
            self.log,
            high_watermark=self.saved_high_watermark,
            retry_ms=0,
        )

    def set_min_isr(self, min_isr: int) -> None:
        """The setting reached this broker."""
        self.min_isr = min_isr
        if isinstance(self.role, Leader):
            self.carry(self.role.on_min_isr(min_isr, now_ms=self.world.now_ms))

    # ------------------------------------------------------------ as a leader

    def produce(self, value: int) -> bool:
        """Append one record; False where this broker does not lead."""
        role = self.role
        if not isinstance(role, Leader) or role.term.resigned:
            return False
        self.log.append((role.term.leader_epoch, value))
        self._tell_grown(role)
        if self.watch is not None:
            self.watch.on_appended(self.world.now_ms)
        if not self.world.group_commit:
            self.carry(role.on_own_end(self.log.log_end_offset))
        return True

    def repeat(self) -> None:
        """A producer sends a batch again that the log has: nothing is appended."""
        role = self.role
        if isinstance(role, Leader) and not role.term.resigned:
            self._tell_grown(role)

    def _tell_grown(self, role: Leader) -> None:
        if role.full_end != NOT_FULL:
            role.on_grown(self.world.now_ms)

    def tick(self, now_ms: int) -> None:
        """Look at followers that lag."""
        role, watch = self.role, self.watch
        if not isinstance(role, Leader):
            return
        looks = watch is not None and watch.is_free
        self.carry(role.on_deadline(now_ms=now_ms))
        if looks and watch is not None:
            watch.on_looked(now_ms)

    def on_fetch(self, fetch: FollowerFetch) -> None:
        """Hear a follower, and answer."""
        role = self.role
        if not isinstance(role, Leader):
            return
        effects = role.on_follower_fetch(
            fetch.source,
            fetch.broker_epoch,
            fetch.nonce,
            fetch.offset,
            fetch.last_epoch,
            fetch.leader_epoch,
            self.world.now_ms,
        )
        answer = effects[-1]
        if self.watch is not None:
            self.watch.on_fetch(fetch, answer, self.world.now_ms)
        if len(effects) > 1:
            self.carry(effects[:-1])
        epoch, start, source = role.term.leader_epoch, self.log.log_start_offset, fetch.source
        if isinstance(answer, effect.ServeFrom):
            records = tuple(self.log.records[fetch.offset : fetch.offset + FETCH_RECORDS])
            high_watermark = role.term.high_watermark
            self.world.send(
                FetchedRecords(
                    source, fetch.nonce, epoch, fetch.offset, records, high_watermark, start
                )
            )
        elif isinstance(answer, effect.Diverging):
            self.world.send(Parting(source, fetch.nonce, epoch, answer.epoch, answer.end_offset))
        elif isinstance(answer, effect.Refuse):
            self.world.seen[f"refused {answer.error.name}"] += 1
            self.world.send(Refused(source, fetch.nonce, epoch, answer.error, start))

    def on_outcome(self, message: WriteOutcome) -> None:
        """The result of a write of this broker."""
        role, now_ms = self.role, self.world.now_ms
        if message.broker_epoch != self.registration.broker_epoch or not isinstance(role, Leader):
            return
        change = message.change
        if message.version is not None:
            self.follow_state(change.committed(message.version))
        elif message.rejection is not None:
            self.controller_epoch = max(self.controller_epoch, self.world.store.controller_epoch)
            self.carry(role.on_isr_rejected(change.nonce, message.rejection, now_ms=now_ms))
        else:
            self.carry(role.on_isr_unknown(change.nonce))

    def on_read(self, message: ReadAnswer) -> None:
        """What the store held."""
        role = self.role
        if message.broker_epoch != self.registration.broker_epoch or not isinstance(role, Leader):
            return
        self.carry(role.on_state_read(message.image, now_ms=self.world.now_ms))
        if not role.term.resigned:
            self.version = max(self.version, role.term.negotiation.committed.version)

    # ------------------------------------------------------------ as a follower

    def fetch(self) -> FollowerFetch | None:
        """Send a fetch; the one before has failed."""
        role = self.role
        if not isinstance(role, Follower):
            return None
        now_ms = self.world.now_ms
        if role.nonce != NO_FETCH:
            role.on_no_answer(role.nonce, now_ms=now_ms)
        if not role.begin_fetch(self.durable_end, now_ms=now_ms):
            return None
        message = FollowerFetch(
            role.leader,
            self.id,
            self.registration.broker_epoch,
            role.nonce,
            role.fetch_offset,
            role.last_fetched_epoch,
            role.leader_epoch,
        )
        self.world.send(message)
        return message

    def on_records(self, message: FetchedRecords) -> None:
        """Append what the leader sent."""
        role = self.role
        if not isinstance(role, Follower):
            return
        effects = role.on_records(
            message.nonce,
            message.leader_epoch,
            message.high_watermark,
            message.log_start,
            empty=not message.records,
        )
        if effects is effect.APPEND:
            for record in message.records:
                self.log.append(record)
            self.world.on_appended(self)
            effects = role.on_appended()
        self.carry(effects)

    def on_parting(self, message: Parting) -> None:
        """Truncate the log where the leader says."""
        role = self.role
        if isinstance(role, Follower):
            self.carry(
                role.on_diverging(
                    message.nonce,
                    message.leader_epoch,
                    message.epoch,
                    message.end,
                    now_ms=self.world.now_ms,
                )
            )

    def on_refused(self, message: Refused) -> None:
        """The leader would not answer."""
        role = self.role
        if isinstance(role, Follower):
            error: ErrorCode = message.error
            self.carry(
                role.on_error(
                    message.nonce,
                    message.leader_epoch,
                    error,
                    message.log_start,
                    now_ms=self.world.now_ms,
                )
            )

    # ------------------------------------------------------------ what the cores ask for

    def carry(self, effects: tuple[effect.LeaderEffect | effect.FollowerEffect, ...]) -> None:
        """Carry effects out, in order."""
        world, log = self.world, self.log
        for item in effects:
            match item:
                case effect.AdvanceHighWatermark(high_watermark):
                    world.on_visible(self, high_watermark)
                case effect.ProposeIsr(change):
                    if self.watch is not None:
                        self.watch.on_proposal(change, world.now_ms)
                    epoch = self.registration.broker_epoch
                    world.send(WriteIsr(self.id, epoch, self.controller_epoch, change))
                case effect.ReadState():
                    world.send(ReadRequest(self.id, self.registration.broker_epoch))
                case effect.TruncateTo(end):
                    epochs = log.last_epoch
                    log.truncate_to(end)
                    world.on_truncated(self, epochs)
                case effect.RestartAt(offset):
                    log.restart_at(offset)
                    world.seen["restart at the leader's log start"] += 1
                case effect.AdvanceLogStart(offset):
                    log.advance_log_start(offset)
                case _:
                    pass


HANDLERS: dict[type, str] = {
    messages.FollowerFetch: "on_fetch",
    messages.FetchedRecords: "on_records",
    messages.Parting: "on_parting",
    messages.Refused: "on_refused",
    messages.State: "on_state",
    messages.WriteOutcome: "on_outcome",
    messages.ReadAnswer: "on_read",
}
