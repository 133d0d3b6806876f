"""Compares the terms of ledgers with the records that a topic still holds. Pure.

Compaction and retention only remove records. So if a topic now holds more aborted records, say,
than the loads have counted, it contradicts their ledgers. Records that could not be read then may
be readable now.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ottla.ledger.partition import PartitionLedger


def more_than_counted(
    topic: str, counted: Mapping[int, PartitionLedger], held: Iterable[PartitionLedger]
) -> Iterator[str]:
    """Yield the terms of which the topic now holds more than its loads have counted.

    `counted` are the ledgers of all loads; `held` are those of the ranges that verify read again.
    """
    sums: dict[int, Counter[str]] = {}
    for ledger in held:
        sums.setdefault(ledger.partition, Counter()).update(_terms(ledger))
    for partition, terms in sorted(sums.items()):
        of_loads = counted.get(partition)
        if of_loads is None or not of_loads.balances:
            continue  # This is reported as a problem of its own.
        for term, count in terms.items():
            before = _terms(of_loads)[term]
            if count > before + of_loads.unreadable:
                yield (
                    f"{topic}-{partition}: the topic has {count} {term} between the "
                    f"offsets {of_loads.start} and {of_loads.end}, and the ledgers of the loads "
                    f"count {before}"
                )


def _terms(ledger: PartitionLedger) -> dict[str, int]:
    return {
        "control records": ledger.control,
        "records of aborted transactions": ledger.aborted,
        "records without a key": ledger.keyless,
    }
