"""A fetch that waits for `min_bytes`, and is woken by new high watermarks of its partitions (P10).

Permissions are checked again before the answer, because ACLs may change while the fetch waits.
"""

from ottla.broker.fetch.allowed import NOTHING_DENIED, Denied, readable_by
from ottla.broker.fetch.parts import FetchParts
from ottla.broker.fetch.read import read_all
from ottla.broker.fetch.reply import FetchReply
from ottla.broker.fetch.sessions import PartitionKey, WantedPartition
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.waiters import Woken
from ottla.broker.requests.request import RequestContext
from ottla.wire.messages.fetch import FetchRequest

_READ_COMMITTED = 1
# The first version in which a fetch may be sent to a follower (KIP-392).
FOLLOWERS_SINCE = 11


class DelayedFetch(Woken):
    """Waits for all its partitions until it is answered."""

    __slots__ = (
        "_body",
        "_deadline",
        "_done",
        "_partitions",
        "_parts",
        "_reply",
        "_request",
        "_rules",
        "_wanted",
    )

    def __init__(
        self,
        parts: FetchParts,
        request: RequestContext,
        body: FetchRequest,
        wanted: list[tuple[PartitionKey, WantedPartition]],
        reply: FetchReply,
        partitions: list[Partition],
        rules: int,
    ) -> None:
        """`rules` is the version of the ACLs that allowed `wanted`; 0 without an authorizer."""
        super().__init__(parts.runtime)
        self._parts = parts
        self._request = request
        self._body = body
        self._wanted = wanted
        self._reply = reply
        self._partitions = partitions
        self._rules = rules
        self._done = False

    def start(self) -> None:
        """Start waiting."""
        self._request.on_abandoned(self._finish)
        self._deadline = self._runtime.purgatory.schedule(self._body.max_wait_ms, self._on_deadline)
        for partition in self._partitions:
            partition.add_waiter(self)

    def take_over(self) -> None:
        """Continue a fetch that has waited on the fast path; answer at once if possible."""
        self.start()
        self._try(at_last=self._body.max_wait_ms <= 0)

    def _look(self) -> None:
        if not self._done:
            self._try(at_last=False)

    def _on_deadline(self) -> None:
        self._try(at_last=True)

    def _try(self, *, at_last: bool) -> None:
        body = self._body
        throttle = self._request.throttle
        if throttle is not None and not throttle.make_room(body):
            self._finish()
            self._request.reply(self._reply.nothing(self._parts.sessions))
            return
        denied = self._newly_denied()
        found = read_all(
            self._parts.partitions,
            self._wanted,
            body.max_bytes,
            committed=body.isolation_level == _READ_COMMITTED,
            from_followers=self._request.version >= FOLLOWERS_SINCE,
        )
        if denied:
            found.add_denied(denied)
        if at_last or found.urgent or found.size_bytes >= body.min_bytes:
            self._finish()
            found.note_use(self._request, self._parts.partitions)
            found.count()
            response = self._reply.build(found)
            self._parts.new_leaders.add_to_fetch(self._request, response)
            self._request.reply(response)

    def _newly_denied(self) -> Denied:
        """Remove the partitions that the client may no longer READ from `_wanted`.

        Return the answers for them.
        """
        access = self._request.access
        if access is None or access.authorizer.version == self._rules:
            return NOTHING_DENIED
        self._rules = access.authorizer.version
        self._wanted, denied = readable_by(self._request, self._parts.partitions, self._wanted)
        return denied

    def _finish(self) -> None:
        self._done = True
        self._runtime.purgatory.cancel(self._deadline)
        for partition in self._partitions:
            partition.waiters.pop(self, None)
