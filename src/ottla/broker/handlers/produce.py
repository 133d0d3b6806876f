"""Produce (0), versions 3-13; 0-2 are advertised, but close the connection, exactly as in Kafka 4.

Clients conclude from an advertised version 0 that compression works (KAFKA-18659). With acks=0
there is no answer, and an error closes the connection. With acks=1 the answer follows the append.
With acks=-1 it waits until the high watermark has passed the batch; under group commit this means
that the batch is on the disks of all in-sync replicas. NOT_LEADER_OR_FOLLOWER names the current
leader (KIP-951). A batch for an internal topic is refused with INVALID_TOPIC_EXCEPTION, unless the
client id is `__admin_client`.
"""

from dataclasses import dataclass
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicId, TopicPartition
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.new_leaders import NewLeaders
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.produce.parts import Turns, check_room
from ottla.broker.produce.refused_batches import log_refused_batch
from ottla.broker.requests.check import RequestCheck
from ottla.broker.requests.handler import NO_ANSWER, Api, Handler, NoAnswer, Versions
from ottla.broker.requests.needs import Amend, DeniedAnswer, Guard, each, topic_or_id
from ottla.broker.requests.portions import in_portions, items
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.purgatory import Purgatory
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.view import ClusterView
from ottla.broker.topics.internal_topics import check_may_produce
from ottla.broker.transactions.produce import ProduceInTransaction
from ottla.broker.transactions.verification import Verifications
from ottla.broker.usage.delays import SLOW_MS, TRANSACTION_WAIT
from ottla.broker.usage.table import PRODUCE
from ottla.network.service import CloseConnection
from ottla.record.header import ATTRIBUTES_POSITION, HEADER_SIZE, TRANSACTIONAL_FLAG
from ottla.record.validation import RejectedBatch, validate
from ottla.security.names import AclOperation, AclResource
from ottla.storage.producers.state import Guard as ProducerGuard
from ottla.wire.api import ApiKey
from ottla.wire.messages.produce import (
    BatchIndexAndErrorMessage,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)

_ACKS_ALL = -1
_NONE = ErrorCode.NONE
_MIN_SERVED = 3


_write_each: Guard[ProduceRequest, ProduceResponse] = each(
    lambda body: body.topic_data,
    lambda response: response.responses,
    topic_or_id(AclOperation.WRITE, lambda topic: (topic.topic_id, topic.name)),
)


def _needs(
    check: RequestCheck[ProduceRequest],
) -> Amend[ProduceResponse] | DeniedAnswer | None:
    """Require WRITE on each topic, and for transactional batches also on the transactional id.

    Whether a batch is transactional is read from the batch, not from the request's fields
    (CVE-2018-17196). With acks=0 a denial closes the connection, and no batch of the request is
    appended.
    """
    body = check.body
    if any(
        _is_transactional(partition)
        for topic in body.topic_data
        for partition in topic.partition_data
    ):
        if body.transactional_id is None:
            raise check.denial(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, "")
        check.require(AclOperation.WRITE, AclResource.TRANSACTIONAL_ID, body.transactional_id)
    return _write_each(check)


def _is_transactional(data: PartitionProduceData) -> bool:
    """Return whether the first batch, which must be the only one, is transactional."""
    records = data.records
    if not isinstance(records, memoryview) or len(records) < HEADER_SIZE:
        return False
    attributes = int.from_bytes(records[ATTRIBUTES_POSITION : ATTRIBUTES_POSITION + 2])
    return bool(attributes & TRANSACTIONAL_FLAG)


def _add_endpoints(response: ProduceResponse, more: ProduceResponse) -> None:
    known = {one.node_id for one in response.node_endpoints}
    response.node_endpoints = [
        *response.node_endpoints,
        *(one for one in more.node_endpoints if one.node_id not in known),
    ]


@dataclass(slots=True, eq=False, repr=False)
class Produce(Handler):
    """Serves Produce."""

    api = Api(
        ProduceRequest,
        ProduceResponse,
        Versions(0, 13),
        needs=_needs,
        portions=in_portions(
            lambda body: body.topic_data,
            lambda response: response.responses,
            lambda topic: (topic.name, topic.topic_id),
            inner=items(
                lambda topic: topic.partition_data, lambda topic: topic.partition_responses
            ),
            also=_add_endpoints,
        ),
    )

    view: ClusterView
    runtime: Runtime
    partitions: Partitions
    settings: BrokerSettings
    new_leaders: NewLeaders
    verifications: Verifications
    turns: Turns

    def handle(
        self, request: RequestContext, body: ProduceRequest
    ) -> ProduceResponse | NoAnswer | None:
        """Append every batch of the request to its partition."""
        acks = body.acks
        if not -1 <= acks <= 1:
            raise OttlaError(
                ErrorCode.INVALID_REQUIRED_ACKS, f"acks must be 0, 1 or -1, not {acks}"
            )
        if body.transactional_id is not None:
            self._produce_in_transaction(request, body)
            return None
        now_ms = self.runtime.clock.now_ms()
        waiting: list[tuple[Partition, int, PartitionProduceResponse]] = []
        topics = []
        for topic in body.topic_data:
            answers = [
                self._append(request, topic, wanted, acks, now_ms, waiting)
                for wanted in topic.partition_data
            ]
            topics.append(
                TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        response = ProduceResponse(responses=topics)
        if acks == 0:
            _close_on_error(response)
            return NO_ANSWER
        if not waiting:
            self.new_leaders.add_to_produce(request, response)
            return response
        DelayedProduce(
            self.runtime.purgatory, self.new_leaders, request, response, waiting, body.timeout_ms
        ).start()
        return None

    def _produce_in_transaction(self, request: RequestContext, body: ProduceRequest) -> None:
        """Append like `handle`, but each batch waits until its transaction is known to be open."""
        waiting: list[tuple[Partition, int, PartitionProduceResponse]] = []

        def append(
            topic: TopicProduceData, wanted: PartitionProduceData, guard: ProducerGuard | None
        ) -> PartitionProduceResponse:
            now_ms = self.runtime.clock.now_ms()
            return self._append(
                request,
                topic,
                wanted,
                body.acks,
                now_ms,
                waiting,
                guard,
                in_transaction=True,
            )

        def finish(answers: list[list[PartitionProduceResponse]]) -> None:
            if request.use is not None and request.use.took_ms(request.received_ms) >= SLOW_MS:
                request.waited_for = TRANSACTION_WAIT
            response = ProduceResponse(
                responses=[
                    TopicProduceResponse(
                        name=topic.name, topic_id=topic.topic_id, partition_responses=each
                    )
                    for topic, each in zip(body.topic_data, answers, strict=True)
                ]
            )
            if body.acks == 0:
                request.drop()
            elif waiting:
                DelayedProduce(
                    self.runtime.purgatory,
                    self.new_leaders,
                    request,
                    response,
                    waiting,
                    body.timeout_ms,
                ).start()
            else:
                self.new_leaders.add_to_produce(request, response)
                request.reply(response)

        ProduceInTransaction(
            self.partitions, self.verifications, request, body, append, finish
        ).start()

    # Hot: once per batch.
    def _append(
        self,
        request: RequestContext,
        topic: TopicProduceData,
        wanted: PartitionProduceData,
        acks: int,
        now_ms: int,
        waiting: list[tuple[Partition, int, PartitionProduceResponse]],
        guard: ProducerGuard | None = None,
        *,
        in_transaction: bool = False,
    ) -> PartitionProduceResponse:
        index = wanted.index
        began_ms = self.runtime.clock.monotonic_ms()
        expansion = request.expansion
        before_bytes = expansion.size_bytes
        try:
            if request.version >= 13:
                partition = self.partitions.get_by_id(topic.topic_id, index)
            else:
                partition = self.partitions.get(topic.name, index)
            check_may_produce(partition.topic, request.client_id)
            use = None
            if request.use is not None:
                use = request.use.of(partition.topic, PRODUCE, request.client_id)
            records = wanted.records
            try:
                partition.check_led()
                if acks == _ACKS_ALL:
                    partition.check_in_sync()
                check_room(expansion)
            except OttlaError as error:
                partition.note_refused(records, error.code)
                raise
            config = partition.log.config
            if not isinstance(records, memoryview):
                raise OttlaError(ErrorCode.INVALID_RECORD, "the request holds no record batch")
            valid = validate(
                records, config, now_ms, produce_version=request.version, expansion=expansion
            )
            if valid.header.is_transactional and not in_transaction:
                raise OttlaError(
                    ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
                    "the batch is of a transaction, and the request names no transactional id",
                )
            appended = partition.append(valid.buffer, valid.header, now_ms, guard)
            if use is not None:
                use.bytes += len(valid.buffer)
        except OttlaError as error:
            return self._refused(request, topic, wanted, error)
        finally:
            if expansion.size_bytes != before_bytes:
                self.turns.let_others_in(request.connection, expansion, began_ms)
        answer = PartitionProduceResponse(
            index=index,
            error_code=_NONE,
            base_offset=appended.base_offset,
            log_append_time_ms=appended.log_append_time,
            log_start_offset=appended.log_start_offset,
        )
        if acks == _ACKS_ALL and partition.high_watermark <= appended.last_offset:
            waiting.append((partition, appended.last_offset + 1, answer))
        return answer

    def _refused(
        self,
        request: RequestContext,
        topic: TopicProduceData,
        wanted: PartitionProduceData,
        error: OttlaError,
    ) -> PartitionProduceResponse:
        """Return the error answer for one partition; log it if an operator should know."""
        image = self.view.image
        found = image.topic_by_id(TopicId(topic.topic_id)) if request.version >= 13 else None
        partition = TopicPartition(found.name if found is not None else topic.name, wanted.index)
        held = self.partitions.find(*partition)
        if held is not None:
            held.traffic.produce_failures += 1
        size = len(wanted.records) if isinstance(wanted.records, memoryview) else 0
        log_refused_batch(request, partition, size, error, image, self.settings)
        if request.use is not None:
            request.use.note_failure(
                request.client_id, ApiKey.PRODUCE, error.code, partition, error.message
            )
        record_errors = error.record_errors if isinstance(error, RejectedBatch) else ()
        return _failed(wanted.index, error.code, error.message, record_errors)

    @staticmethod
    def on_error(
        body: ProduceRequest, code: ErrorCode, message: str | None, _version: int
    ) -> ProduceResponse:
        """Return the same error for every partition."""
        if body.acks == 0:
            raise CloseConnection(
                f"its produce request without acknowledgement failed: {message}", "produce: acks=0"
            )
        return ProduceResponse(
            responses=[
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=[
                        _failed(wanted.index, code, message) for wanted in topic.partition_data
                    ],
                )
                for topic in body.topic_data
            ]
        )


def _failed(
    index: int,
    code: ErrorCode,
    message: str | None,
    record_errors: tuple[tuple[int, str], ...] = (),
) -> PartitionProduceResponse:
    return PartitionProduceResponse(
        index=index,
        error_code=code,
        base_offset=-1,
        log_append_time_ms=-1,
        log_start_offset=-1,
        error_message=message,
        record_errors=[
            BatchIndexAndErrorMessage(batch_index=at, batch_index_error_message=what)
            for at, what in record_errors
        ],
    )


def _close_on_error(response: ProduceResponse) -> None:
    """Close the connection, the only way to make a producer with acks=0 refresh its metadata."""
    for topic in response.responses:
        for answer in topic.partition_responses:
            if answer.error_code != _NONE:
                raise CloseConnection(
                    "a batch it sent without asking for an acknowledgement was refused: "
                    f"{answer.error_message}",
                    "produce: batch with acks=0",
                )


class DelayedProduce:
    """A request with acks=-1 whose batches are appended, and which waits for the high watermark."""

    __slots__ = (
        "_count",
        "_deadline",
        "_new_leaders",
        "_purgatory",
        "_request",
        "_response",
        "_timeout_ms",
        "_waiting",
    )

    def __init__(
        self,
        purgatory: Purgatory,
        new_leaders: NewLeaders,
        request: RequestContext,
        response: ProduceResponse,
        waiting: list[tuple[Partition, int, PartitionProduceResponse]],
        timeout_ms: int,
    ) -> None:
        self._purgatory = purgatory
        self._new_leaders = new_leaders
        self._request = request
        self._response = response
        self._waiting = waiting
        self._count = len(waiting)
        self._timeout_ms = timeout_ms

    def start(self) -> None:
        """Wait for every partition; answer the request after the last one, or at the timeout."""
        self._deadline = self._purgatory.schedule(self._timeout_ms, self._on_timeout)
        for partition, offset, answer in self._waiting:
            answer.error_code = ErrorCode.REQUEST_TIMED_OUT
            partition.on_high_watermark(offset, partial(self._on_reached, partition, answer))

    def _on_reached(
        self, partition: Partition, answer: PartitionProduceResponse, code: ErrorCode
    ) -> None:
        if self._count == 0:
            return
        answer.error_code = code
        self._count -= 1
        if self._count == 0:
            self._purgatory.cancel(self._deadline)
            self._explain(partition)
            self._answer()

    def _on_timeout(self) -> None:
        self._count = 0
        late = next(
            partition
            for partition, _, answer in self._waiting
            if answer.error_code == ErrorCode.REQUEST_TIMED_OUT
        )
        self._explain(late, is_late=True)
        self._answer()

    def _explain(self, partition: Partition, *, is_late: bool = False) -> None:
        """Note which partition the request waited for last, and what that waited for."""
        request = self._request
        use = request.use
        if use is None or request.waited_for is not None:
            return
        if use.took_ms(request.received_ms) >= SLOW_MS:
            request.waited_for = partition.wait_for_commit(is_late=is_late)

    def _answer(self) -> None:
        self._new_leaders.add_to_produce(self._request, self._response)
        self._request.reply(self._response)
