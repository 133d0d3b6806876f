"""The handlers of Ottla's own APIs that explain missing offsets and compare log ends."""

import asyncio
from dataclasses import asdict, dataclass, field
from functools import partial

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.orders import Orders
from ottla.broker.partitions.partition import Partition
from ottla.broker.partitions.partitions import Partitions
from ottla.broker.requests.handler import Api, Handler, Versions
from ottla.broker.requests.needs import brokers_only, resource
from ottla.broker.requests.request import RequestContext
from ottla.broker.runtime.runtime import Runtime
from ottla.broker.runtime.turns import FairTurns
from ottla.broker.runtime.view import ClusterView
from ottla.ledger.account import Account
from ottla.security.names import AclOperation, AclResource
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.range_account import Accounting, Moved
from ottla.wire.messages.offset_ledger import (
    CompactedOffsets,
    DeletedRange,
    DeletionEvidence,
    LogEndsRequest,
    LogEndsResponse,
    LostRange,
    OffsetLedgerRequest,
    OffsetLedgerResponse,
)

_HIGH_WATERMARK = -1
# How many walks over logs run at a time, in total and per user. They use the broker's threads.
_WALKS = 2
_WALKS_OF_USER = 1
# A walk is repeated up to this often if the log was cleaned or truncated during it.
_ATTEMPTS = 5


@dataclass(slots=True, eq=False, repr=False)
class OffsetLedger(Handler):
    """OffsetLedger (1012), versions 0-1: explains each offset of a range, by the leader's evidence.

    An API of Ottla, advertised to Ottla's clients only. A thread reads the headers of the log's
    batches; the ledger has recorded what compaction, retention and elections removed.
    """

    api = Api(
        OffsetLedgerRequest,
        OffsetLedgerResponse,
        Versions(0, 1),
        needs=resource(AclOperation.DESCRIBE, AclResource.TOPIC, lambda body: body.topic),
    )

    view: ClusterView
    runtime: Runtime
    partitions: Partitions
    turns: FairTurns = field(default_factory=lambda: FairTurns(_WALKS, _WALKS_OF_USER))

    async def handle(
        self, request: RequestContext, body: OffsetLedgerRequest
    ) -> OffsetLedgerResponse:
        """Explain the offsets of the range when it is the client's turn. Raises OttlaError."""
        walk = object()
        place: asyncio.Future[None] = self.runtime.loop.create_future()
        if self.turns.take(request.connection.principal, walk, partial(_give, place)):
            _give(place)
        try:
            await place
            if request.connection.closed:
                raise OttlaError(ErrorCode.REQUEST_TIMED_OUT, "the client has left: ask again")
            return await self._accounted(body)
        finally:
            self.turns.leave(walk)

    async def _accounted(self, body: OffsetLedgerRequest) -> OffsetLedgerResponse:
        partition = self.partitions.get(body.topic, body.partition)
        partition.check_led()
        end = partition.high_watermark if body.end == _HIGH_WATERMARK else body.end
        for _ in range(_ATTEMPTS):
            account = await self._account(partition, body.start, end)
            if account is not None:
                return self._response(partition, account)
        raise OttlaError(
            ErrorCode.REQUEST_TIMED_OUT,
            f"{partition.topic_partition} was changed {_ATTEMPTS} times while it was walked: "
            "ask again",
        )

    async def _account(self, partition: Partition, start: int, end: int) -> Account | None:
        """Return the explanation; None if the log changed during the walk."""
        log = partition.log
        accounting = Accounting(log, start, end)
        try:
            if log.filesystem.in_memory:
                account = accounting.run()
            else:
                account = await self.runtime.loop.run_in_executor(None, accounting.run)
        except Moved as moved:
            if accounting.still_holds and partition.log is log:
                raise OttlaError(
                    ErrorCode.CORRUPT_MESSAGE,
                    f"{partition.topic_partition}: the log is damaged ({moved}); read it with "
                    "`ottla log dump`, and restore it from a replica or a copy",
                ) from moved
            return None
        except OSError as error:
            if accounting.still_holds and partition.log is log:
                raise storage_error(error, log.folder, "walk the log") from error
            return None
        partition.check_led()
        return account if accounting.still_holds and partition.log is log else None

    def _response(self, partition: Partition, account: Account) -> OffsetLedgerResponse:
        return OffsetLedgerResponse(
            broker_id=self.view.broker_id,
            leader_epoch=partition.leader_epoch,
            start=account.start,
            end=account.end,
            log_start_offset=partition.log_start_offset,
            high_watermark=partition.high_watermark,
            log_end_offset=partition.log_end_offset,
            data=account.data,
            control=account.control,
            aborted=account.aborted,
            undecided=account.undecided,
            compacted=account.compacted,
            deleted=account.deleted,
            lost=account.lost,
            unexplained=account.unexplained,
            replaced=account.replaced,
            compacted_by=[
                CompactedOffsets(
                    pass_number=one.number, since=one.since, at_ms=one.at_ms, count=count
                )
                for one, count in sorted(account.passes.items(), key=lambda item: item[0].number)
            ],
            deleted_by=[
                DeletedRange(
                    start=one.start,
                    end=one.end,
                    causes=[int(cause) for cause in one.counts],
                    counts=list(one.counts.values()),
                    first_ms=one.first_ms,
                    last_ms=one.last_ms,
                )
                for one in account.deletions
            ],
            lost_by=[
                LostRange(
                    start=one.start,
                    end=one.end,
                    leader_epoch=one.leader_epoch,
                    at_ms=one.at_ms,
                )
                for one in account.losses
            ],
            evidence=[DeletionEvidence(**asdict(one)) for one in account.evidence],
        )


def _give(place: "asyncio.Future[None]") -> None:
    if not place.done():
        place.set_result(None)


@dataclass(slots=True, eq=False, repr=False)
class LogEnds(Handler):
    """LogEnds (1002), version 0: returns the log end offsets of replicas here without a leader.

    An API of Ottla, between brokers only; see `cluster.orders`.
    """

    api = Api(LogEndsRequest, LogEndsResponse, Versions(0, 0), needs=brokers_only)

    orders: Orders

    def handle(self, _request: RequestContext, body: LogEndsRequest) -> LogEndsResponse:
        """Return the log end offset of each replica."""
        return self.orders.log_ends(body)
