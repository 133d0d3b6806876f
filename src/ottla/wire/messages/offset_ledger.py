"""OffsetLedger (key 1012, Ottla's own): counts by what became of the offsets in a range.

Sent to the partition's leader, which answers for its own replica. Times in ms since 1970, -1 for
unknown.
"""

from ottla.wire.notation import Message, array, int8, int16, int32, int64, string


class OffsetLedgerRequest(Message, api_key=1012, versions="0", flexible="0+"):
    """An OffsetLedger request."""

    topic: str = string()
    partition: int = int32()
    # [start, end); an end of -1 means the high watermark.
    start: int = int64()
    end: int = int64(default=-1)


class CompactedOffsets(Message):
    """An element of `OffsetLedgerResponse.compacted_by`: passes from `since` to `pass_number`.

    Pass 0 stands for passes of the leader that this replica was copied from, -1 for passes before
    the ledger began.
    """

    pass_number: int = int64()
    since: int = int64()
    at_ms: int = int64(default=-1)
    count: int = int64()


class DeletedRange(Message):
    """An element of `OffsetLedgerResponse.deleted_by`; `counts` are the offsets by cause."""

    start: int = int64()
    end: int = int64()
    causes: list[int] = array(int8)
    counts: list[int] = array(int64)
    first_ms: int = int64(default=-1)
    last_ms: int = int64(default=-1)


class LostRange(Message):
    """An element of `OffsetLedgerResponse.lost_by`: committed, then lost in an unclean election."""

    start: int = int64()
    end: int = int64()
    # The epoch of the elected leader, which did not have these offsets.
    leader_epoch: int = int32()
    at_ms: int = int64(default=-1)


class OffsetLedgerResponse(Message, api_key=1012, versions="0", flexible="0+"):
    """An OffsetLedger response. The counts are of offsets in [start, end)."""

    throttle_time_ms: int = int32()
    error_code: int = int16()
    error_message: str | None = string(nullable="0+")
    broker_id: int = int32(default=-1)
    leader_epoch: int = int32(default=-1)
    start: int = int64(default=-1)
    end: int = int64(default=-1)
    log_start_offset: int = int64(default=-1)
    high_watermark: int = int64(default=-1)
    log_end_offset: int = int64(default=-1)
    data: int = int64()
    control: int = int64()
    aborted: int = int64()
    undecided: int = int64()
    compacted: int = int64()
    deleted: int = int64()
    lost: int = int64()
    unexplained: int = int64()
    # Lost offsets that later records use again; each is also counted as what it is now.
    replaced: int = int64()
    compacted_by: list[CompactedOffsets] = array(CompactedOffsets)
    deleted_by: list[DeletedRange] = array(DeletedRange)
    lost_by: list[LostRange] = array(LostRange)
