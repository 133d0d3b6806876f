"""Ends a transaction that no coordinator knows, and that holds back readers."""

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.ids import TopicPartition
from ottla.client.admin import Admin


async def abort_hanging(admin: Admin, name: TopicPartition, start_offset: int) -> None:
    """Abort the hanging transaction that begins at `start_offset` of the partition.

    Raises INVALID_TXN_STATE where none begins there, or its coordinator will end it.
    """
    for one in await admin.transactions.open_in([name]):
        if one.start_offset != start_offset:
            continue
        if one.transaction is not None:
            raise OttlaError(
                ErrorCode.INVALID_TXN_STATE,
                f"the transaction at {name} offset {start_offset} is that of "
                f"{one.transaction.transactional_id!r}, which its coordinator will end; "
                f"`ottla txn abort {one.transaction.transactional_id}` does so now",
            )
        await admin.transactions.abort_in_partition(one)
        return
    raise OttlaError(
        ErrorCode.INVALID_TXN_STATE,
        f"no open transaction begins at {name} offset {start_offset}; "
        f"`ottla why lso {name}` shows those that are open",
    )
