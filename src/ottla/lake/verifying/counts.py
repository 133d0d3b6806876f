"""Compares the terms of ledgers with what a topic still holds. Pure.

Compaction and retention take records away and bring none back: a topic that holds more aborted
records, say, than the loads have counted contradicts their ledgers. What could not be read then may
be readable now.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from ottla.ledger.partition import PartitionLedger


def more_than_counted(
    topic: str, counted: Mapping[int, PartitionLedger], held: Iterable[PartitionLedger]
) -> Iterator[str]:
    """Yield of which terms the topic holds more by now than its loads have counted.

    `counted` are the ledgers of all loads, `held` those of what verify has read of them again.
    """
    sums: dict[int, Counter[str]] = {}
    for ledger in held:
        sums.setdefault(ledger.partition, Counter()).update(_terms(ledger))
    for partition, terms in sorted(sums.items()):
        of_loads = counted.get(partition)
        if of_loads is None or not of_loads.balances:
            continue  # That is a problem of its own.
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
