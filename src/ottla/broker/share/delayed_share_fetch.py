"""One ShareFetch: applies its acknowledgements, then acquires records or waits for them."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.waiters import Woken
from ottla.broker.requests.auditing import Denials, Need
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.purgatory import Deadline
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.share.acknowledgements import Results, SlotResult, acknowledge_all, fetch_topics
from ottla.broker.share.group_settings import ShareGroupSettings
from ottla.broker.share.served import ServedPartition
from ottla.broker.share.share_partitions import SharePartitions
from ottla.security.names import AclOperation, AclResource
from ottla.share.deliveries import Acknowledged
from ottla.share.session import FINAL_EPOCH, INITIAL_EPOCH, SessionSlot, ShareSession
from ottla.wire.messages.share_records import ShareFetchRequest, ShareFetchResponse

_RECORD_LIMIT = 1


class DelayedShareFetch(Woken):
    """One ShareFetch until it is answered; a waiter of every partition that it reads."""

    def __init__(
        self,
        runtime: Runtime,
        sharing: SharePartitions,
        group_settings: ShareGroupSettings,
        new_leaders: NewLeaders,
        request: RequestContext,
        body: ShareFetchRequest,
        session: ShareSession,
    ) -> None:
        super().__init__(runtime)
        self._sharing = sharing
        self._group_settings = group_settings
        self._new_leaders = new_leaders
        self._request = request
        self._denials = Denials(request)
        self._body = body
        self._session = session
        self._results: dict[SessionSlot, SlotResult] = {}
        self._partitions: list[Partition] = []
        self._served: list[ServedPartition] = []
        # The topics that were read, and the size of the records found.
        self._read: list[tuple[str, int]] = []
        self._deadline: Deadline | None = None
        self._done = False

    def start(self, acknowledged: dict[SessionSlot, list[Acknowledged]]) -> None:
        """Process the request.

        It is answered when enough records are available, or at its deadline.
        """
        self._request.on_abandoned(self._finish)
        acknowledge_all(self._sharing, self._session.key, acknowledged, self._on_acknowledged)

    def _on_acknowledged(self, results: Results) -> None:
        for slot, (code, message) in results.items():
            self._results[slot] = SlotResult(acknowledged=code, acknowledge_message=message)
        if self._done:
            return
        body = self._body
        if body.share_session_epoch == FINAL_EPOCH:
            self._sharing.close_session(self._session)
            self._reply()
        elif body.max_bytes <= 0 or body.max_records <= 0 or not self._session.partitions:
            self._reply()
        else:
            self._try(at_last=body.max_wait_ms <= 0)

    def _look(self) -> None:
        if not self._done:
            self._try(at_last=False)

    def _on_deadline(self) -> None:
        self._try(at_last=True)

    def _try(self, *, at_last: bool) -> None:
        body = self._body
        throttle = self._request.throttle
        if throttle is not None and not throttle.make_room(body):
            self._reply()
            return
        at_once = at_last or any(each.acknowledged for each in self._results.values())
        if (at_once or self._is_enough()) and (self._collect() or at_once):
            self._reply()
        elif self._deadline is None:
            self._deadline = self._runtime.purgatory.schedule(body.max_wait_ms, self._on_deadline)

    def _is_enough(self) -> bool:
        """Whether `min_bytes` of records are available; none are acquired before that."""
        wanted = min(self._body.min_bytes, self._body.max_bytes)
        if wanted <= 1:
            return True
        for slot in list(self._session.partitions):
            try:
                enough, found = self._find(slot).is_enough(wanted)
            except OttlaError:
                # `_collect` puts the error into the answer, with the records available now.
                return True
            if enough:
                return True
            wanted -= found
        return False

    def _collect(self) -> bool:
        """Acquire available records; return whether there are records or errors to answer with."""
        body, session = self._body, self._session
        bytes_left, records_left = body.max_bytes, body.max_records
        served_slots: list[SessionSlot] = []
        urgent = False
        for slot in list(session.partitions):
            if bytes_left <= 0 or records_left <= 0:
                break
            try:
                served = self._find(slot)
                found = served.acquire(
                    session.key.member_id,
                    bytes_left,
                    records_left,
                    strict=body.share_acquire_mode == _RECORD_LIMIT,
                    batch_size=body.batch_size,
                )
            except OttlaError as error:
                result = self._results.setdefault(slot, SlotResult())
                result.code, result.message = error.code, error.message
                urgent = True
                continue
            topic = served.partition.topic
            if found is None:
                self._read.append((topic, 0))
                continue
            portion, acquired = found
            result = self._results.setdefault(slot, SlotResult())
            result.data, result.acquired = portion.covering(acquired), acquired
            self._read.append((topic, len(result.data)))
            bytes_left -= len(result.data)
            records_left -= sum(each.last - each.first + 1 for each in acquired)
            served_slots.append(slot)
        session.rotate(served_slots)
        return urgent or bool(served_slots)

    def _find(self, slot: SessionSlot) -> ServedPartition:
        served = self._sharing.served(self._session.key.group_id, slot.topic_id, slot.partition)
        access, name = self._request.access, served.partition.topic
        if access is not None and not access.allows(AclOperation.READ, AclResource.TOPIC, name):
            self._denials.add(Need(AclOperation.READ, AclResource.TOPIC, name))
            raise OttlaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "Topic authorization failed.")
        if self not in served.waiters:
            served.waiters[self] = None
            self._served.append(served)
        if self not in served.partition.waiters:
            served.partition.add_waiter(self)
            self._partitions.append(served.partition)
        return served

    def _reply(self) -> None:
        self._finish()
        results = self._results
        if self._body.share_session_epoch == INITIAL_EPOCH:
            # The first answer of a session lists every partition, as in Kafka.
            results = {slot: SlotResult() for slot in self._session.partitions} | results
        config = self._group_settings.config(self._session.key.group_id)
        response = ShareFetchResponse(
            error_code=ErrorCode.NONE,
            acquisition_lock_timeout_ms=config.limits.lock_ms,
            responses=fetch_topics(results),
        )
        self._new_leaders.add_to_share(self._request, response)
        if (use := self._request.use) is not None:
            size = sum(found for _, found in self._read)
            use.count_fetch(self._request.client_id, self._read, size)
        self._request.reply(response)

    def _finish(self) -> None:
        self._denials.end()
        self._done = True
        if self._deadline is not None:
            self._runtime.purgatory.cancel(self._deadline)
        for partition in self._partitions:
            partition.waiters.pop(self, None)
        for served in self._served:
            served.waiters.pop(self, None)
