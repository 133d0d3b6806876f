"""The leader of a partition in one leader epoch: its reactions to fetches, states and time. Pure.

Each leader epoch has a new `Leader`, which does not know any follower's log end offset yet (P23).
Before it calls the first method, the shell records in the log's leader epochs that this epoch
begins at `epoch_start`. Every method returns the effects to carry out, in order.
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
from ottla.replica.reasons import BY_CONTROLLER, Reason, joining, leaving, named, out_of_room
from ottla.replica.registration import NEVER
from ottla.replica.remote import UNKNOWN_END, Remote
from ottla.replica.term import NOTHING, Effects, Term

NOT_FULL = -1
NO_CONTACTS: Mapping[BrokerId, int] = {}


class Leader:
    """Tracks followers, moves high watermark and ISR, and fences fetches of other epochs."""

    __slots__ = ("full_end", "lag_ms_max", "silence_ms_max", "term")

    def __init__(self, term: Term, *, lag_ms_max: int, silence_ms_max: int | None = None) -> None:
        """`lag_ms_max` is `replica.lag.time.max.ms`.

        A follower that lacks records and has not fetched for `silence_ms_max`, which is shorter
        than a session, is removed earlier.
        """
        self.term = term
        self.lag_ms_max = lag_ms_max
        self.silence_ms_max = lag_ms_max if silence_ms_max is None else silence_ms_max
        # The log's end if some follower holds the whole log, else NOT_FULL. While it is NOT_FULL,
        # an append needs no bookkeeping here: see `on_grown`.
        self.full_end = NOT_FULL

    # ------------------------------------------------------------ what happens to the log

    def begin(self, *, now_ms: int) -> Effects:
        """Begin to lead. A leader that is alone in the ISR commits at once.

        Called once, after the leader is created.
        """
        return self.term.advance() + self._settle_eligible(now_ms)

    # Hot: once per append or flush.
    def on_own_end(self, own_end: int) -> Effects:
        """Note that the leader's own log holds everything below `own_end`.

        With group commit that is the flushed end.
        """
        return self.term.on_own_end(own_end)

    # Hot: once per append, except while every follower lags (`full_end` is NOT_FULL).
    def on_grown(self, now_ms: int) -> None:
        """Note an append: followers that held the whole log lack records since `now_ms`.

        From then on such a follower has records to fetch, and is silent if it does not (R-12).
        Call this after every append while `full_end` is not NOT_FULL. An append that adds no record
        (a duplicate batch of a producer) changes nothing: the follower still holds the whole log.
        """
        term = self.term
        full_end = self.full_end
        if full_end == NOT_FULL or full_end == term.log.log_end_offset:
            return
        self.full_end = NOT_FULL
        for remote in term.remotes.values():
            if remote.end >= full_end:
                remote.caught_up_ms = now_ms

    # Hot: thousands of times per second. A fetch that changes nothing allocates nothing.
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
        """Handle a fetch, which confirms that the follower holds all records below `offset` (R-2).

        The last effect is the answer: ServeFrom, Diverging or Refuse; the answer must carry
        `nonce` and this leader's epoch. `last_fetched_epoch` is the epoch of the
        follower's last record, -1 for none.
        """
        term = self.term
        if current_leader_epoch != term.leader_epoch or term.resigned:
            return self._fence(broker_id, current_leader_epoch, now_ms)
        remote = term.remotes.get(broker_id)
        if remote is None:
            return UNKNOWN
        if nonce <= remote.nonce:
            return OVERTAKEN
        remote.nonce = nonce
        if broker_epoch != remote.broker_epoch:
            remote.broker_epoch = broker_epoch
            self._forget_end(remote, now_ms)
        log = term.log
        log_end = log.log_end_offset
        if (
            last_fetched_epoch != term.leader_epoch
            or offset > log_end
            or offset < log.log_start_offset
        ):
            refusal = term.compare(offset, last_fetched_epoch)
            if refusal is not None:
                self._forget_end(remote, now_ms)
                return refusal
        moved = offset != remote.end
        remote.note_fetch(offset, log_end, now_ms)
        if offset >= log_end:
            self.full_end = log_end
        if remote.counts:
            if moved:
                advanced = term.advance()
                if advanced:
                    return advanced + SERVE
        elif term.may_join(remote):
            return self._expand(remote) + SERVE
        return SERVE

    def on_still_followed(self, broker_id: BrokerId, at_ms: int) -> None:
        """Note that a follower still followed at `at_ms`, without a new fetch of this partition."""
        remote = self.term.remotes.get(broker_id)
        if remote is not None and remote.end != UNKNOWN_END:
            remote.followed_ms = max(remote.followed_ms, at_ms)

    # ------------------------------------------------------------ what happens to the ISR

    def on_state(self, image: PartitionImage, *, now_ms: int) -> Effects:
        """Apply the stored state `image`, which the controller sent or this leader wrote.

        A state older than the known one is ignored.
        """
        term = self.term
        if image.leader_epoch < term.leader_epoch or term.resigned:
            return NOTHING
        if image.leader_epoch > term.leader_epoch or image.leader != term.broker_id:
            now_led = f"leader {image.leader} in epoch {image.leader_epoch}"
            return self.resign(f"the store names {now_led}", now_ms=now_ms)
        before = term.negotiation.committed
        if image.version <= before.version:
            return NOTHING
        reason = term.negotiation.on_committed(image)
        for broker_id in before.isr:
            # A broker that left the ISR may have lost its log since then, so it must fetch first
            # (S11).
            remote = term.remotes.get(broker_id)
            if remote is not None and broker_id not in image.isr:
                remote.forget_end()
        was_blocked = term.blocked
        term.recount(now_ms)
        below: Effects = (BelowMinIsr(),) if term.blocked and not was_blocked else NOTHING
        effects = self._explain(before, reason or BY_CONTROLLER, now_ms) + below
        return effects + term.advance() + self._settle_eligible(now_ms)

    def on_state_read(self, image: PartitionImage | None, *, now_ms: int) -> Effects:
        """Act on the answer to ReadState; None means that the topic is gone."""
        term = self.term
        if term.resigned:
            return NOTHING
        known = term.negotiation.committed
        if image is None:
            return self.resign("the store does not know the partition any more", now_ms=now_ms)
        if image.version > known.version or image.leader_epoch > known.leader_epoch:
            return self.on_state(image, now_ms=now_ms)
        if image.version == known.version and image.nonce != known.nonce:
            return self.resign("the store holds another past than ours", now_ms=now_ms)
        return term.negotiation.on_unchanged(image.version, term.min_isr)

    def on_isr_rejected(self, nonce: int, rejection: Rejection, *, now_ms: int) -> Effects:
        """Handle the store's rejection of the proposal with that nonce.

        The maximal ISR does not change (R-8).
        """
        term = self.term
        if term.resigned:
            return NOTHING
        proposal = term.negotiation.proposal
        effects = term.negotiation.on_rejected(nonce, rejection, term.min_isr, now_ms)
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
        """Read the state, because the outcome of the proposal with that nonce is unknown."""
        term = self.term
        return NOTHING if term.resigned else term.negotiation.on_unknown(nonce)

    def on_min_isr(self, min_isr: int, *, now_ms: int) -> Effects:
        """Handle a change of `min.insync.replicas`."""
        self.term.on_min_isr(min_isr, now_ms)
        return self.term.advance() + self._settle_eligible(now_ms)

    def resign(self, cause: str, *, now_ms: int) -> Effects:
        """Stop leading for `cause`, which is recorded. Nothing is committed from now on."""
        term = self.term
        if term.resigned:
            return NOTHING
        term.resigned = True
        evidence = f"high watermark {term.high_watermark}, log end {term.log.log_end_offset}"
        resigned = self._decision(DecisionKind.RESIGNED, cause, evidence, None, now_ms)
        return (resigned, Resign())

    # ------------------------------------------------------------ time

    def next_deadline_ms(self) -> int | None:
        """The time of the next work for `on_deadline`, unless followers catch up earlier.

        It is also enough to call `on_deadline` every half `replica.lag.time.max.ms` (P17).
        """
        term = self.term
        negotiation = term.negotiation
        if term.resigned or negotiation.retry_at_ms is not None:
            return None if term.resigned else negotiation.retry_at_ms
        if negotiation.proposal is not None:
            return None  # The answer to the proposal comes first.
        lag_ms, silence_ms = self.lag_ms_max, self.silence_ms_max
        return min(
            (min(r.caught_up_ms + lag_ms, r.silent_since_ms + silence_ms) for r in term.behind()),
            default=None,
        )

    def on_deadline(
        self, *, now_ms: int, contact_ms: Mapping[BrokerId, int] = NO_CONTACTS
    ) -> Effects:
        """Propose to remove followers from the ISR that lag for `lag_ms_max` or are silent (P16).

        A silent follower lacks records and has sent no fetch for `silence_ms_max`. It is removed so
        that writes do not wait for a broker that can reach the store but not this leader. It is
        removed only if the ISR keeps `min.insync.replicas` members; otherwise see `is_isolated`.
        `contact_ms` is when each broker last fetched any partition: a follower that fetches other
        partitions, but not this one because a disk is slow, is not silent.
        """
        term = self.term
        negotiation = term.negotiation
        if term.resigned:
            return NOTHING
        if negotiation.proposal is not None:
            return self.on_retry(now_ms=now_ms)
        slowest_ms = now_ms - self.lag_ms_max
        behind = term.behind()
        late = [r for r in behind if r.caught_up_ms <= slowest_ms]
        silent = self._silent(behind, contact_ms, now_ms)
        for remote in late:
            silent.pop(remote, None)
        if len(term.isr) - len(late) - len(silent) < term.min_isr:
            silent.clear()
        if not late and not silent:
            return NOTHING
        out = {remote.broker_id for remote in (*late, *silent)}
        isr = tuple(broker for broker in term.isr if broker not in out)
        reason = leaving(term.log.log_end_offset, late, silent, self.lag_ms_max, now_ms)
        effect = negotiation.propose(isr, (), term.min_isr, reason)
        term.recount(now_ms)
        return (effect,)

    def on_full(self, broker_id: BrokerId, *, now_ms: int) -> Effects:
        """Propose to remove a follower whose disk has no room for the records that it lacks.

        It is removed at once, since it cannot catch up before there is room. Like a silent
        follower, it is removed only if the ISR keeps `min.insync.replicas` members. Otherwise
        `on_deadline` removes it.
        """
        term = self.term
        if term.resigned or term.negotiation.proposal is not None:
            return NOTHING
        full = next((r for r in term.behind() if r.broker_id == broker_id), None)
        if full is None or len(term.isr) - 1 < term.min_isr:
            return NOTHING
        isr = tuple(broker for broker in term.isr if broker != broker_id)
        reason = out_of_room(full, term.log.log_end_offset)
        effect = term.negotiation.propose(isr, (), term.min_isr, reason)
        term.recount(now_ms)
        return (effect,)

    def on_retry(self, *, now_ms: int) -> Effects:
        """Retry the write that the store rejected, if it is due. Does not check any follower."""
        term = self.term
        retry_at_ms = term.negotiation.retry_at_ms
        if term.resigned or retry_at_ms is None or now_ms < retry_at_ms:
            return NOTHING
        return (term.negotiation.settle(term.min_isr),)

    def is_isolated(self, silent: Collection[BrokerId], since_ms: int) -> bool:
        """Whether so many in-sync followers are silent that this leader is likely cut off itself.

        `silent` are live brokers that have sent no fetch of any partition since `since_ms`. The
        leader is likely isolated if the ISR without them would be below `min.insync.replicas`, or
        if all other ISR members, at least two, are silent. They stay in the ISR then, because one
        of them can lead and reach the others.
        """
        term = self.term
        if term.resigned or self.silence_ms_max >= self.lag_ms_max:
            return False
        isr = term.isr
        silent_isr = [
            remote
            for remote in term.required
            if remote.broker_id in silent
            and remote.broker_id in isr
            and remote.contact_ms <= since_ms
        ]
        left = len(isr) - len(silent_isr)
        return left < term.min_isr <= len(isr) or left == 1 < len(silent_isr)

    # ------------------------------------------------------------ rules

    def _silent(
        self, behind: list[Remote], contact_ms: Mapping[BrokerId, int], now_ms: int
    ) -> dict[Remote, int]:
        """Return the silent followers among `behind`, each with the time of its last contact."""
        longest_ms = now_ms - self.silence_ms_max
        silent: dict[Remote, int] = {}
        for remote in behind:
            last_ms = max(remote.contact_ms, contact_ms.get(remote.broker_id, NEVER))
            if max(last_ms, remote.silent_since_ms) <= longest_ms:
                silent[remote] = last_ms
        return silent

    def _forget_end(self, remote: Remote, now_ms: int) -> None:
        """Forget the follower's end; if it held the whole log, it is caught up until `now_ms`."""
        if NOT_FULL != self.full_end <= remote.end:
            remote.caught_up_ms = now_ms
        remote.forget_end()

    def _expand(self, remote: Remote) -> Effects:
        term = self.term
        isr = (*term.isr, remote.broker_id)
        members = ((remote.broker_id, remote.broker_epoch),)
        # A follower may join at the high watermark without reaching the log's end. It then has the
        # full lag time from now on; otherwise it would leave and join repeatedly.
        remote.caught_up_ms = remote.fetched_ms
        reason = joining(remote, term.high_watermark, term.epoch_start)
        effect = term.negotiation.propose(isr, members, term.min_isr, reason)
        term.recount(remote.fetched_ms)
        return (effect,)

    def _settle_eligible(self, now_ms: int) -> Effects:
        """Propose to clear the stored ELR and last known ELR; nothing is committed before that.

        They may exist although the ISR is large enough: an ELR if `min.insync.replicas` was
        lowered, a last known ELR if the ISR was empty before. An election could choose from them.
        """
        term = self.term
        negotiation = term.negotiation
        if not term.may_elect_others or term.under_min_isr or negotiation.proposal is not None:
            return NOTHING
        effect = negotiation.settle(term.min_isr)
        term.recount(now_ms)
        return (effect,)

    def _fence(self, broker_id: BrokerId, epoch: int, now_ms: int) -> Effects:
        term = self.term
        if term.resigned:
            return NOT_LEADER
        if epoch > term.leader_epoch:
            return UNKNOWN
        remote = term.remotes.get(broker_id)
        if remote is None or remote.refused_epoch == epoch:
            return FENCED
        remote.refused_epoch = epoch
        cause = f"broker {broker_id} fetched in leader epoch {epoch}"
        evidence = f"the leader epoch is {term.leader_epoch}"
        fenced = self._decision(DecisionKind.FENCED, cause, evidence, None, now_ms)
        return (fenced, *FENCED)

    def _explain(self, before: PartitionImage, reason: Reason, now_ms: int) -> Effects:
        after = self.term.negotiation.committed.isr
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
        term = self.term
        return Decision(
            kind,
            term.partition,
            term.broker_id,
            term.leader_epoch,
            cause,
            evidence,
            setting,
            now_ms,
        )
