"""Compares the end of a copy with the log it is copied from. Pure."""

from ottla.replica.effects import OUT_OF_RANGE, Diverging, LeaderEffect
from ottla.replica.log_view import LogView


def compare(log: LogView, offset: int, last_fetched_epoch: int) -> tuple[LeaderEffect, ...] | None:
    """Compare the end of a copy with its source `log` (KIP-279, KIP-595).

    The copy ends at `offset`; its last record is of leader epoch `last_fetched_epoch`, -1 for none.
    Returns the effects that answer the fetch, or None if the copy is a prefix of `log`.
    """
    if last_fetched_epoch >= 0:
        epoch, end = log.end_offset_for_epoch(last_fetched_epoch)
        if epoch < 0:
            epoch, end = log.last_epoch, log.log_end_offset
        if epoch < 0 or last_fetched_epoch < log.first_epoch:
            # The source has deleted its records of that epoch, so the copy cannot be compared with
            # them: it restarts at the source's log start, and loses nothing.
            return OUT_OF_RANGE
        if epoch < last_fetched_epoch or end < offset:
            return (Diverging(epoch, end),)
    if offset < log.log_start_offset or offset > log.log_end_offset:
        return OUT_OF_RANGE
    return None
