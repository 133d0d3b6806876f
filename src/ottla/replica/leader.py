"""The leader's view of one partition in one term: who is in sync, and what is committed.

Pure. A new term is a new `Leader`, which knows of no follower's end (P23). Before its first
method is called the shell has noted in the log's leader epochs that the term begins at
`epoch_start`. Every method returns the effects to carry out, in order.
"""

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId, TopicPartition
from ottla.metadata.decisions import Decision, DecisionKind
from ottla.metadata.image import PartitionImage
from ottla.metadata.in_sync import effective_min_isr
from ottla.replica.effects import (
    FENCED,
    NOT_LEADER,
    OUT_OF_RANGE,
    OVERTAKEN,
    SERVE,
    UNKNOWN,
    AdvanceHighWatermark,
    BelowMinIsr,
    Diverging,
    LeaderEffect,
    Resign,
)
from ottla.replica.isr import IsrChange, Rejection
from ottla.replica.log_view import LogView
from ottla.replica.negotiation import Negotiation
from ottla.replica.remote import Remote
from ottla.replica.standing import Standing

Effects = tuple[LeaderEffect, ...]
NOTHING: Effects = ()


class Leader:
    """Tracks followers, moves the high watermark and the ISR, and refuses who speaks out of term.

    Invariant: high_watermark <= own_end <= log.log_end_offset, and it never moves back.
    """

    __slots__ = (
        "_blocked",
        "_required",
        "broker_id",
        "epoch_start",
        "high_watermark",
        "lag_ms_max",
        "leader_epoch",
        "log",
        "min_isr",
        "negotiation",
        "own_end",
        "partition",
        "remotes",
        "resigned",
        "standing",
    )

    def __init__(
        self,
        partition: TopicPartition,
        standing: Standing,
        image: PartitionImage,
        log: LogView,
        *,
        own_end: int,
        high_watermark: int,
        min_isr: int,
        lag_ms_max: int,
        now_ms: int,
    ) -> None:
        """`own_end`: what the leader counts for itself, the flushed end with group commit.

        `high_watermark` is what this replica knew last; `min_isr` and `lag_ms_max` are
        `min.insync.replicas` and `replica.lag.time.max.ms`.
        """
        assert image.leader == standing.broker_id
        assert image.leader in image.isr
        self.partition = partition
        self.standing = standing
        self.broker_id = standing.broker_id
        self.log = log
        self.leader_epoch = image.leader_epoch
        self.epoch_start = log.log_end_offset
        self.own_end = own_end
        self.high_watermark = min(high_watermark, own_end)
        self.min_isr = min_isr
        self.lag_ms_max = lag_ms_max
        self.negotiation = Negotiation(standing, image)
        self.resigned = False
        self.remotes: dict[BrokerId, Remote] = {}
        # Those besides the leader for whom the high watermark waits.
        self._required: tuple[Remote, ...] = ()
        self._blocked = False
        self._recount(now_ms)

    # ------------------------------------------------------------ what happens to the log

    def begin(self, *, now_ms: int) -> Effects:
        """Once, after the leader was made: a leader that is alone in sync commits at once."""
        return self._advance() + self._settle_eligible(now_ms)

    # Hot: once per append or flush.
    def on_own_end(self, own_end: int) -> Effects:
        """The leader's own log holds everything below `own_end` (flushed, with group commit)."""
        self.own_end = own_end
        return self._advance()

    # Hot: thousands of times per second; nothing is allocated where nothing changes.
    def on_follower_fetch(
        self,
        broker_id: BrokerId,
        broker_epoch: int,
        nonce: int,
        offset: int,
        last_fetched_epoch: int,
        current_leader_epoch: int,
        now_ms: int,
    ) -> Effects:
        """A follower holds everything below `offset` and asks for more (R-2).

        The last effect is the answer: ServeFrom, Diverging or Refuse; the answer must say
        `nonce` and our leader epoch. `last_fetched_epoch` is the epoch of its last record,
        -1 for none.
        """
        if current_leader_epoch != self.leader_epoch or self.resigned:
            return self._fence(broker_id, current_leader_epoch, now_ms)
        remote = self.remotes.get(broker_id)
        if remote is None:
            return UNKNOWN
        if nonce <= remote.nonce:
            return OVERTAKEN
        remote.nonce = nonce
        if broker_epoch != remote.broker_epoch:
            remote.broker_epoch = broker_epoch
            remote.forget_end()
        log = self.log
        log_end = log.log_end_offset
        if (
            last_fetched_epoch != self.leader_epoch
            or offset > log_end
            or offset < log.log_start_offset
        ):
            refusal = self.compare(offset, last_fetched_epoch)
            if refusal is not None:
                remote.forget_end()
                return refusal
        moved = offset != remote.end
        remote.note_fetch(offset, log_end, now_ms)
        if remote.counts:
            if moved:
                advanced = self._advance()
                if advanced:
                    return advanced + SERVE
        elif self._may_join(remote):
            return self._expand(remote) + SERVE
        return SERVE

    # ------------------------------------------------------------ what happens to the ISR

    def on_state(self, image: PartitionImage, *, now_ms: int) -> Effects:
        """The store holds `image`: told by the controller, or written by ourselves.

        An older state than the one known says nothing.
        """
        if image.leader_epoch < self.leader_epoch or self.resigned:
            return NOTHING
        if image.leader_epoch > self.leader_epoch or image.leader != self.broker_id:
            told = f"leader {image.leader} in epoch {image.leader_epoch}"
            return self.resign(f"the store names {told}", now_ms=now_ms)
        before = self.negotiation.committed
        if image.version <= before.version:
            return NOTHING
        own = self.negotiation.on_committed(image)
        for broker_id in before.isr:
            # Who left may come back as another: it is to fetch again first (S11).
            remote = self.remotes.get(broker_id)
            if remote is not None and broker_id not in image.isr:
                remote.forget_end()
        was_blocked = self._blocked
        self._recount(now_ms)
        below: Effects = (BelowMinIsr(),) if self._blocked and not was_blocked else NOTHING
        effects = self._explain(before, own, now_ms) + below
        return effects + self._advance() + self._settle_eligible(now_ms)

    def on_state_read(self, image: PartitionImage | None, *, now_ms: int) -> Effects:
        """The answer to ReadState; None where the topic is gone."""
        if self.resigned:
            return NOTHING
        known = self.negotiation.committed
        if image is None:
            return self.resign("the store does not know the partition any more", now_ms=now_ms)
        if image.version > known.version or image.leader_epoch > known.leader_epoch:
            return self.on_state(image, now_ms=now_ms)
        if image.version == known.version and image.nonce != known.nonce:
            return self.resign("the store holds another past than ours", now_ms=now_ms)
        return self.negotiation.on_unchanged(image.version, self.min_isr)

    def on_isr_rejected(self, nonce: int, rejection: Rejection, *, now_ms: int) -> Effects:
        """The store refused the proposal of that nonce. The maximal ISR stays (R-8)."""
        if self.resigned:
            return NOTHING
        proposal = self.negotiation.proposal
        effects = self.negotiation.on_rejected(nonce, rejection, self.min_isr, now_ms)
        if proposal is None or proposal.nonce != nonce:
            return effects
        refused = self._decision(
            DecisionKind.ISR_REFUSED,
            f"the store refused ISR {_named(proposal.after.isr)}",
            rejection.value,
            None,
            now_ms,
        )
        return (refused, *effects)

    def on_isr_unknown(self, nonce: int) -> Effects:
        """Nobody knows whether the store took the proposal of that nonce."""
        return NOTHING if self.resigned else self.negotiation.on_unknown(nonce)

    def on_min_isr(self, min_isr: int, *, now_ms: int) -> Effects:
        """`min.insync.replicas` was changed."""
        self.min_isr = min_isr
        self._recount(now_ms)
        return self._advance() + self._settle_eligible(now_ms)

    def resign(self, cause: str, *, now_ms: int) -> Effects:
        """Lead no more: deposed, or without a session. Commits nothing from now on."""
        if self.resigned:
            return NOTHING
        self.resigned = True
        evidence = f"high watermark {self.high_watermark}, log end {self.log.log_end_offset}"
        told = self._decision(DecisionKind.RESIGNED, cause, evidence, None, now_ms)
        return (told, Resign())

    # ------------------------------------------------------------ time

    def next_deadline_ms(self) -> int | None:
        """When `on_deadline` will have something to do, unless followers catch up before.

        To call it every half `replica.lag.time.max.ms` instead is enough (P17).
        """
        negotiation = self.negotiation
        if self.resigned or negotiation.retry_at_ms is not None:
            return None if self.resigned else negotiation.retry_at_ms
        if negotiation.proposal is not None:
            return None  # The answer to the proposal comes first.
        caught_up = [remote.caught_up_ms for remote in self._behind()]
        return min(caught_up) + self.lag_ms_max if caught_up else None

    def on_deadline(self, *, now_ms: int) -> Effects:
        """Propose those out who lack records and were not caught up for too long (P16)."""
        negotiation = self.negotiation
        if self.resigned:
            return NOTHING
        if negotiation.retry_at_ms is not None and now_ms >= negotiation.retry_at_ms:
            return (negotiation.settle(self.min_isr),)
        if negotiation.proposal is not None:
            return NOTHING
        slowest_ms = now_ms - self.lag_ms_max
        late = [r.broker_id for r in self._behind() if r.caught_up_ms <= slowest_ms]
        if not late:
            return NOTHING
        isr = tuple(broker for broker in self.isr if broker not in late)
        effect = negotiation.propose(isr, (), self.min_isr)
        self._recount(now_ms)
        return (effect,)

    # ------------------------------------------------------------ what clients may

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        """The committed ISR."""
        return self.negotiation.committed.isr

    @property
    def under_min_isr(self) -> bool:
        """Whether the ISR is too small to commit."""
        committed = self.negotiation.committed
        return len(committed.isr) < effective_min_isr(committed, self.min_isr)

    def check_append(self, acks: int, *, now_ms: int) -> ErrorCode:
        """NONE, or why nothing may be appended: asked before (P25)."""
        if not self.is_certain(now_ms):
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if acks == -1 and self.under_min_isr:
            return ErrorCode.NOT_ENOUGH_REPLICAS
        return ErrorCode.NONE

    def check_committed(self, end: int) -> ErrorCode | None:
        """The outcome of an acks=all append that ended at `end`; None while it is open."""
        if self.high_watermark >= end:
            return ErrorCode.NONE
        if self.resigned:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        return ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND if self.under_min_isr else None

    def is_certain(self, now_ms: int) -> bool:
        """Whether nobody else can lead: our session lives, or all in sync still follow us.

        Who could be elected is in the ISR, or eligible; whoever leads or follows another does
        not fetch in our term. So a store that is away stops nobody, but a cut-off leader stops.
        Meant for acks=0 and 1 and for reads; what is committed needs no such care.
        """
        if self.resigned:
            return False
        if now_ms < self.standing.confirmed_until_ms:
            return True
        if self.negotiation.committed.elr:
            return False
        oldest_ms = now_ms - self.standing.session_ms
        return all(remote.followed_ms >= oldest_ms for remote in self._required)

    def latest_offset(self) -> int | None:
        """What a consumer may take for the end; None before the term's start is committed (R-10).

        None is OFFSET_NOT_AVAILABLE: an older leader may have shown more than we know yet.
        """
        return self.high_watermark if self.high_watermark >= self.epoch_start else None

    def check_read(self, offset: int) -> ErrorCode:
        """Whether a consumer may read at `offset`: up to the high watermark, and wait above it.

        An offset up to the log's end is never out of range: it may have been committed (S1).
        """
        if self.resigned:
            return ErrorCode.NOT_LEADER_OR_FOLLOWER
        if self.log.log_start_offset <= offset <= self.log.log_end_offset:
            return ErrorCode.NONE
        return ErrorCode.OFFSET_OUT_OF_RANGE

    def readable_replicas(self, offset: int) -> tuple[BrokerId, ...]:
        """Members of the ISR that hold everything below `offset` (KIP-392), the leader first."""
        ends = [r for r in self._required if r.broker_id in self.isr and r.end >= offset]
        return (self.broker_id, *(remote.broker_id for remote in ends))

    # ------------------------------------------------------------ rules

    # Hot: once per fetch that moves a follower.
    def _advance(self) -> Effects:
        """R-3: the least end of the maximal ISR, while the ISR is large enough."""
        if self._blocked or self.resigned:
            return NOTHING
        least = self.own_end
        for remote in self._required:
            if remote.end < least:
                least = remote.end
        if least <= self.high_watermark:
            return NOTHING
        self.high_watermark = least
        return (AdvanceHighWatermark(least),)

    def _may_join(self, remote: Remote) -> bool:
        """R-4: it holds all that is or may be committed, and lives as who fetched."""
        return (
            remote.end >= self.high_watermark
            and remote.end >= self.epoch_start
            and self.negotiation.proposal is None
            and self.standing.live.get(remote.broker_id) == remote.broker_epoch
        )

    def _expand(self, remote: Remote) -> Effects:
        isr = (*self.isr, remote.broker_id)
        joining = ((remote.broker_id, remote.broker_epoch),)
        effect = self.negotiation.propose(isr, joining, self.min_isr)
        self._recount(remote.fetched_ms)
        return (effect,)

    def _settle_eligible(self, now_ms: int) -> Effects:
        """Clear an ELR that a lower minimum left behind; until then nothing is committed."""
        negotiation = self.negotiation
        if not negotiation.committed.elr or self.under_min_isr or negotiation.proposal is not None:
            return NOTHING
        effect = negotiation.settle(self.min_isr)
        self._recount(now_ms)
        return (effect,)

    def compare(self, offset: int, last_fetched_epoch: int) -> Effects | None:
        """How a follower's log ends beside ours; None where it continues (KIP-279, KIP-595)."""
        log = self.log
        if last_fetched_epoch >= 0:
            epoch, end = log.end_offset_for_epoch(last_fetched_epoch)
            if epoch < 0:
                epoch, end = log.last_epoch, log.log_end_offset
            if epoch < 0 or last_fetched_epoch < log.first_epoch:
                # Our records of that time are deleted, so that nobody can tell whether the
                # follower's are the same: it begins anew where we begin, and loses nothing.
                return OUT_OF_RANGE
            if epoch < last_fetched_epoch or end < offset:
                return (Diverging(epoch, end),)
        if offset < log.log_start_offset or offset > log.log_end_offset:
            return OUT_OF_RANGE
        return None

    def _fence(self, broker_id: BrokerId, epoch: int, now_ms: int) -> Effects:
        if self.resigned:
            return NOT_LEADER
        if epoch > self.leader_epoch:
            return UNKNOWN
        remote = self.remotes.get(broker_id)
        if remote is None or remote.refused_epoch == epoch:
            return FENCED
        remote.refused_epoch = epoch
        cause = f"broker {broker_id} fetched in leader epoch {epoch}"
        evidence = f"the leader epoch is {self.leader_epoch}"
        told = self._decision(DecisionKind.FENCED, cause, evidence, None, now_ms)
        return (told, *FENCED)

    def _behind(self) -> list[Remote]:
        """In-sync followers that lack records; one that holds all is never late."""
        log_end = self.log.log_end_offset
        isr = self.isr
        return [r for r in self._required if r.end < log_end and r.broker_id in isr]

    def _recount(self, now_ms: int) -> None:
        """After a change of replicas, ISR, proposal or minimum."""
        negotiation = self.negotiation
        committed = negotiation.committed
        maximal = negotiation.maximal_isr
        self.remotes = {
            broker: self.remotes.get(broker) or Remote(broker, now_ms)
            for broker in committed.replicas
            if broker != self.broker_id
        }
        for remote in self.remotes.values():
            remote.counts = remote.broker_id in maximal
        self._required = tuple(remote for remote in self.remotes.values() if remote.counts)
        self._blocked = self.under_min_isr or bool(committed.elr)

    # ------------------------------------------------------------ reasons

    def _explain(self, before: PartitionImage, own: IsrChange | None, now_ms: int) -> Effects:
        after = self.negotiation.committed
        if set(after.isr) == set(before.isr):
            return NOTHING
        left = [b for b in before.isr if b not in after.isr]
        kind = DecisionKind.ISR_SHRUNK if left else DecisionKind.ISR_EXPANDED
        cause = f"ISR {_named(before.isr)} became {_named(after.isr)}"
        if own is None:
            return (self._decision(kind, cause, "the controller changed it", None, now_ms),)
        end = self.log.log_end_offset
        if left:
            late = [self.remotes[b] for b in left if b in self.remotes]
            seen = (f"{r.broker_id}: {now_ms - r.caught_up_ms} ms ago" for r in late)
            evidence = f"log end {end}; last caught up {', '.join(seen)}"
            setting = f"replica.lag.time.max.ms={self.lag_ms_max}"
            return (self._decision(kind, cause, evidence, setting, now_ms),)
        joined = (self.remotes[b] for b, _ in own.joining if b in self.remotes)
        seen = (f"{r.broker_id} (broker epoch {r.broker_epoch}): end {r.end}" for r in joined)
        floor = f"high watermark {self.high_watermark}, epoch start {self.epoch_start}"
        return (self._decision(kind, cause, f"{', '.join(seen)}; {floor}", None, now_ms),)

    def _decision(
        self, kind: DecisionKind, cause: str, evidence: str, setting: str | None, now_ms: int
    ) -> Decision:
        return Decision(
            kind,
            self.partition,
            self.broker_id,
            self.leader_epoch,
            cause,
            evidence,
            setting,
            now_ms,
        )


def _named(brokers: tuple[BrokerId, ...]) -> str:
    return "[" + ", ".join(str(broker) for broker in brokers) + "]"
