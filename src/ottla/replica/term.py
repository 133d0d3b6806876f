"""One leader epoch of a leader: in-sync followers, committed offsets, readable offsets.

A `leader.Leader` handles the events; its `Term` has the state and the rules. Pure.
"""

from ottla.base.errors import ErrorCode
from ottla.base.ids import BrokerId, TopicPartition
from ottla.metadata.image import PartitionImage
from ottla.metadata.in_sync import effective_min_isr
from ottla.replica.compare import compare
from ottla.replica.effects import AdvanceHighWatermark, LeaderEffect
from ottla.replica.log_view import LogView
from ottla.replica.negotiation import Negotiation
from ottla.replica.registration import Registration
from ottla.replica.remote import Remote

Effects = tuple[LeaderEffect, ...]
NOTHING: Effects = ()


class Term:
    """A leader's state in one leader epoch, and the rules over it.

    Invariant: high_watermark <= own_end <= log.log_end_offset, and high_watermark never decreases.
    `log` is replaced when the replica moves to another directory.
    """

    __slots__ = (
        "blocked",
        "broker_id",
        "epoch_start",
        "high_watermark",
        "leader_epoch",
        "log",
        "min_isr",
        "negotiation",
        "own_end",
        "partition",
        "registration",
        "remotes",
        "required",
        "resigned",
    )

    def __init__(
        self,
        partition: TopicPartition,
        registration: Registration,
        image: PartitionImage,
        log: LogView,
        *,
        own_end: int,
        high_watermark: int,
        min_isr: int,
        now_ms: int,
    ) -> None:
        """`own_end` is the end of the leader's own log, or its flushed end with group commit.

        `high_watermark` is the last one known to this replica; `min_isr` is `min.insync.replicas`.
        """
        assert image.leader == registration.broker_id
        assert image.leader in image.isr
        self.partition = partition
        self.registration = registration
        self.broker_id = registration.broker_id
        self.log = log
        self.leader_epoch = image.leader_epoch
        self.epoch_start = log.log_end_offset
        self.own_end = own_end
        self.high_watermark = min(high_watermark, own_end)
        self.min_isr = min_isr
        self.negotiation = Negotiation(registration, image)
        self.resigned = False
        self.remotes: dict[BrokerId, Remote] = {}
        # The followers whose ends bound the high watermark.
        self.required: tuple[Remote, ...] = ()
        # Whether nothing may be committed: the ISR is too small, or brokers outside it may be
        # elected.
        self.blocked = False
        self.recount(now_ms)

    # ------------------------------------------------------------ reads and writes of clients

    @property
    def isr(self) -> tuple[BrokerId, ...]:
        """The committed ISR."""
        return self.negotiation.committed.isr

    @property
    def under_min_isr(self) -> bool:
        """Whether the ISR is too small to commit."""
        committed = self.negotiation.committed
        return len(committed.isr) < effective_min_isr(committed, self.min_isr)

    @property
    def may_elect_others(self) -> bool:
        """Whether an election may choose brokers outside the ISR, according to the store.

        These are the ELR and the last known ELR, from before the ISR was empty (R-6). They need
        not have the records that this leader commits.
        """
        committed = self.negotiation.committed
        known = committed.last_known_elr
        return bool(committed.elr) or any(broker != self.broker_id for broker in known)

    def is_certain(self, now_ms: int) -> bool:
        """Whether it is certain that no other broker leads.

        It is certain if our session is alive, or if all in-sync replicas still follow us: an
        election chooses from the ISR and the ELR, and a broker that leads, or follows another
        leader, does not fetch in our leader epoch. So leaders continue while the store is down, and
        a leader that is cut off stops. Used for acks=0, acks=1 and reads; commits do not need it.
        """
        if self.resigned:
            return False
        if now_ms < self.registration.confirmed_until_ms:
            return True
        if self.negotiation.committed.elr:
            return False
        oldest_ms = now_ms - self.registration.session_ms
        return all(remote.followed_ms >= oldest_ms for remote in self.required)

    def latest_offset(self) -> int | None:
        """The end offset for consumers; None until this epoch's start offset is committed (R-10).

        None means OFFSET_NOT_AVAILABLE: an earlier leader may have had a higher high watermark.
        """
        return self.high_watermark if self.high_watermark >= self.epoch_start else None

    # Hot: once per partition of a consumer's fetch.
    def check_read(self, offset: int) -> ErrorCode:
        """Check whether a consumer may read at `offset`, which must not exceed the log's end.

        An offset up to the log's end is never out of range: it may have been committed (S1).
        """
        if self.log.log_start_offset <= offset <= self.log.log_end_offset:
            return ErrorCode.NONE
        return ErrorCode.OFFSET_OUT_OF_RANGE

    def readable_replicas(self, offset: int) -> tuple[BrokerId, ...]:
        """ISR members that hold everything below `offset` (KIP-392), the leader first."""
        ends = [r for r in self.required if r.broker_id in self.isr and r.end >= offset]
        return (self.broker_id, *(remote.broker_id for remote in ends))

    @property
    def commits_alone(self) -> bool:
        """Whether the leader commits alone, because no follower is in sync."""
        return not (self.required or self.blocked or self.resigned)

    # ------------------------------------------------------------ rules

    def compare(self, offset: int, last_fetched_epoch: int) -> Effects | None:
        """Compare a follower's log end with our log; None if they agree (KIP-279, KIP-595)."""
        return compare(self.log, offset, last_fetched_epoch)

    # Hot: once per append or flush.
    def on_own_end(self, own_end: int) -> Effects:
        """Note that the leader's own log holds everything below `own_end`."""
        self.own_end = own_end
        return self.advance()

    def on_min_isr(self, min_isr: int, now_ms: int) -> None:
        """Handle a change of `min.insync.replicas`."""
        self.min_isr = min_isr
        self.recount(now_ms)

    # Hot: once per fetch that moves a follower.
    def advance(self) -> Effects:
        """Advance the high watermark to the lowest log end in the maximal ISR (R-3).

        It does not advance while the ISR is too small (`blocked`).
        """
        if self.blocked or self.resigned:
            return NOTHING
        least = self.own_end
        for remote in self.required:
            if remote.end < least:
                least = remote.end
        if least <= self.high_watermark:
            return NOTHING
        self.high_watermark = least
        return (AdvanceHighWatermark(least),)

    def recount(self, now_ms: int) -> None:
        """Recompute the rules after a change of replicas, ISR, proposal or minimum."""
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
        self.required = tuple(remote for remote in self.remotes.values() if remote.counts)
        self.blocked = self.under_min_isr or self.may_elect_others

    def may_join(self, remote: Remote) -> bool:
        """Whether a follower holds all records that may be committed, so it may join the ISR (R-4).

        Its last fetch must be from its present registration.
        """
        return (
            remote.end >= self.high_watermark
            and remote.end >= self.epoch_start
            and self.negotiation.proposal is None
            and self.registration.live.get(remote.broker_id) == remote.broker_epoch
        )

    def behind(self) -> list[Remote]:
        """In-sync followers that lack records.

        A follower that holds the whole log is never late.
        """
        log_end = self.log.log_end_offset
        isr = self.isr
        return [r for r in self.required if r.end < log_end and r.broker_id in isr]
