"""The leader of one partition in one term: what it does about fetches, states and time.

Pure. A new term is a new `Leader`, which knows of no follower's end (P23). Before its first
method is called the shell has noted in the log's leader epochs that the term begins at
`epoch_start`. Every method returns the effects to carry out, in order.
"""

from collections.abc import Collection, Mapping

from ottla.base.ids import BrokerId
from ottla.metadata.decisions import Decision, DecisionKind
from ottla.metadata.image import PartitionImage
from ottla.replica.effects import (
    FENCED,
    NOT_LEADER,
    OVERTAKEN,
    SERVE,
    UNKNOWN,
    BelowMinIsr,
    Resign,
)
from ottla.replica.isr import Rejection
from ottla.replica.reasons import BY_CONTROLLER, Reason, joining, leaving, named
from ottla.replica.remote import UNKNOWN_END, Remote
from ottla.replica.standing import NEVER
from ottla.replica.term import NOT_FULL, NOTHING, Effects, Term

NOTHING_HEARD: Mapping[BrokerId, int] = {}


class Leader(Term):
    """Tracks followers, moves high watermark and ISR, and refuses who speaks out of term."""

    __slots__ = ()

    # ------------------------------------------------------------ what happens to the log

    def begin(self, *, now_ms: int) -> Effects:
        """Once, after the leader was made: a leader that is alone in sync commits at once."""
        return self._advance() + self._settle_eligible(now_ms)

    # Hot: once per append or flush.
    def on_own_end(self, own_end: int) -> Effects:
        """The leader's own log holds everything below `own_end` (flushed, with group commit)."""
        self.own_end = own_end
        return self._advance()

    # Hot: once per append, but for those while every follower lags (`full_end` is NOT_FULL).
    def on_grown(self, now_ms: int) -> None:
        """Records were appended: a follower that held all before them lacks them since `now_ms`.

        Only from now on is there something for it to fetch, and to be heard of it (R-12). To be
        called after every append that finds `full_end` set. An append that adds nothing (a batch
        that a producer sent again) says nothing: the follower holds all still.
        """
        full_end = self.full_end
        if full_end == NOT_FULL or full_end == self.log.log_end_offset:
            return
        self.full_end = NOT_FULL
        for remote in self.remotes.values():
            if remote.end >= full_end:
                remote.caught_up_ms = now_ms

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
            self._forget_end(remote, now_ms)
        log = self.log
        log_end = log.log_end_offset
        if (
            last_fetched_epoch != self.leader_epoch
            or offset > log_end
            or offset < log.log_start_offset
        ):
            refusal = self.compare(offset, last_fetched_epoch)
            if refusal is not None:
                self._forget_end(remote, now_ms)
                return refusal
        moved = offset != remote.end
        remote.note_fetch(offset, log_end, now_ms)
        if offset >= log_end:
            self.full_end = log_end
        if remote.counts:
            if moved:
                advanced = self._advance()
                if advanced:
                    return advanced + SERVE
        elif self._may_join(remote):
            return self._expand(remote) + SERVE
        return SERVE

    def on_still_followed(self, broker_id: BrokerId, at_ms: int) -> None:
        """A follower that asks for nothing new here followed us at `at_ms`, in this term."""
        remote = self.remotes.get(broker_id)
        if remote is not None and remote.end != UNKNOWN_END:
            remote.followed_ms = max(remote.followed_ms, at_ms)

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
        reason = self.negotiation.on_committed(image)
        for broker_id in before.isr:
            # Who left may come back as another: it is to fetch again first (S11).
            remote = self.remotes.get(broker_id)
            if remote is not None and broker_id not in image.isr:
                remote.forget_end()
        was_blocked = self._blocked
        self._recount(now_ms)
        below: Effects = (BelowMinIsr(),) if self._blocked and not was_blocked else NOTHING
        effects = self._explain(before, reason or BY_CONTROLLER, now_ms) + below
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
            f"the store refused ISR {named(proposal.after.isr)}",
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
        lag_ms, silence_ms = self.lag_ms_max, self.silence_ms_max
        return min(
            (min(r.caught_up_ms + lag_ms, r.silent_since_ms + silence_ms) for r in self._behind()),
            default=None,
        )

    def on_deadline(
        self, *, now_ms: int, heard_ms: Mapping[BrokerId, int] = NOTHING_HEARD
    ) -> Effects:
        """Propose followers out that lack records and were not caught up for too long (P16).

        And those that lack records and have been silent for as long as it takes to be dead, where
        enough remain: writes do not wait for a broker that the store reaches and this one does
        not (else see `is_isolated`). `heard_ms` tells when each broker was last heard of, about
        any partition: one that fetches others but not this one, say while its disk is slow, lives.
        """
        negotiation = self.negotiation
        if self.resigned:
            return NOTHING
        if negotiation.proposal is not None:
            return self.on_retry(now_ms=now_ms)
        slowest_ms = now_ms - self.lag_ms_max
        behind = self._behind()
        late = [r for r in behind if r.caught_up_ms <= slowest_ms]
        silent = self._silent(behind, heard_ms, now_ms)
        for remote in late:
            silent.pop(remote, None)
        if len(self.isr) - len(late) - len(silent) < self.min_isr:
            silent.clear()
        if not late and not silent:
            return NOTHING
        out = {remote.broker_id for remote in (*late, *silent)}
        isr = tuple(broker for broker in self.isr if broker not in out)
        reason = leaving(self.log.log_end_offset, late, silent, self.lag_ms_max, now_ms)
        effect = negotiation.propose(isr, (), self.min_isr, reason)
        self._recount(now_ms)
        return (effect,)

    def on_retry(self, *, now_ms: int) -> Effects:
        """Settle anew what the store refused, once it is time. Judges no follower."""
        retry_at_ms = self.negotiation.retry_at_ms
        if self.resigned or retry_at_ms is None or now_ms < retry_at_ms:
            return NOTHING
        return (self.negotiation.settle(self.min_isr),)

    def is_isolated(self, silent: Collection[BrokerId], since_ms: int) -> bool:
        """Whether so few in sync are heard of that it is rather we whom nobody hears.

        `silent` are live brokers that have not been heard of since `since_ms`, about whatever
        partition. Where nothing can be committed without them, or where they are several and all
        the others there are, one of them can lead and hears of the rest: they are not proposed
        out.
        """
        if self.resigned or self.silence_ms_max >= self.lag_ms_max:
            return False
        isr = self.isr
        unheard = [
            remote
            for remote in self._required
            if remote.broker_id in silent
            and remote.broker_id in isr
            and remote.heard_ms <= since_ms
        ]
        left = len(isr) - len(unheard)
        return left < self.min_isr <= len(isr) or left == 1 < len(unheard)

    # ------------------------------------------------------------ rules

    def _silent(
        self, behind: list[Remote], heard_ms: Mapping[BrokerId, int], now_ms: int
    ) -> dict[Remote, int]:
        """Of followers that lack records, those not heard of for too long; and since when."""
        longest_ms = now_ms - self.silence_ms_max
        silent: dict[Remote, int] = {}
        for remote in behind:
            last_ms = max(remote.heard_ms, heard_ms.get(remote.broker_id, NEVER))
            if max(last_ms, remote.silent_since_ms) <= longest_ms:
                silent[remote] = last_ms
        return silent

    def _forget_end(self, remote: Remote, now_ms: int) -> None:
        """What a follower holds is not known any more; it may have held all until now."""
        if NOT_FULL != self.full_end <= remote.end:
            remote.caught_up_ms = now_ms
        remote.forget_end()

    def _expand(self, remote: Remote) -> Effects:
        isr = (*self.isr, remote.broker_id)
        members = ((remote.broker_id, remote.broker_epoch),)
        # It may have reached the high watermark and never the log's end: a member that was just
        # accepted is given the full time, or it would leave and join again and again.
        remote.caught_up_ms = remote.fetched_ms
        reason = joining(remote, self.high_watermark, self.epoch_start)
        effect = self.negotiation.propose(isr, members, self.min_isr, reason)
        self._recount(remote.fetched_ms)
        return (effect,)

    def _settle_eligible(self, now_ms: int) -> Effects:
        """Have the store forget who may be elected besides the ISR; till then nothing is committed.

        That is an ELR that a lower minimum left behind, or who was eligible last before the ISR
        was empty.
        """
        negotiation = self.negotiation
        if not self._may_elect_others or self.under_min_isr or negotiation.proposal is not None:
            return NOTHING
        effect = negotiation.settle(self.min_isr)
        self._recount(now_ms)
        return (effect,)

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

    def _explain(self, before: PartitionImage, reason: Reason, now_ms: int) -> Effects:
        after = self.negotiation.committed.isr
        if set(after) == set(before.isr):
            return NOTHING
        left = any(broker not in after for broker in before.isr)
        kind = DecisionKind.ISR_SHRUNK if left else DecisionKind.ISR_EXPANDED
        evidence, setting = reason
        cause = f"ISR {named(before.isr)} became {named(after)}"
        return (self._decision(kind, cause, evidence, setting, now_ms),)

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
