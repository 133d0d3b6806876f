"""OffsetLedger (key 1012, Ottla's own): what became of each offset of a range of a partition.

The leader answers; its account is of its own replica. Times in ms since 1970, -1 for unknown.
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
    """An element of `OffsetLedgerResponse.compacted_by`: a pass, or passes `since` up to it.

    Pass 0: of the leader that this replica was copied from; -1: before a ledger was kept.
    """

    pass_number: int = int64()
    since: int = int64()
    at_ms: int = int64(default=-1)
    count: int = int64()


class DeletedRange(Message):
    """An element of `OffsetLedgerResponse.deleted_by`; cause after cause, with how many of each."""

    start: int = int64()
    end: int = int64()
    causes: list[int] = array(int8)
    counts: list[int] = array(int64)
    first_ms: int = int64(default=-1)
    last_ms: int = int64(default=-1)


class LostRange(Message):
    """An element of `OffsetLedgerResponse.lost_by`: committed once, and gone with an election."""

    start: int = int64()
    end: int = int64()
    # The term of the leader that did not have them.
    leader_epoch: int = int32()
    at_ms: int = int64(default=-1)


class OffsetLedgerResponse(Message, api_key=1012, versions="0", flexible="0+"):
    """The answer to it. The counts are of offsets in [start, end)."""

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
    # Lost, and given to other records since; these are counted as what they are now.
    replaced: int = int64()
    compacted_by: list[CompactedOffsets] = array(CompactedOffsets)
    deleted_by: list[DeletedRange] = array(DeletedRange)
    lost_by: list[LostRange] = array(LostRange)
