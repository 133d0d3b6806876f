"""What became of the records: each once, whole transactions, none of those that were aborted."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from chaos.transactions.task import ABORTED, COMMITTED


class Copied(NamedTuple):
    """A record that was read from the target; `transaction` is None where its copier names none."""

    partition: int
    offset: int
    value: bytes
    transaction: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found. All but the first four must be 0."""

    records: int
    transactions: int
    # Transactions that their copiers gave up or had to give up, and records of such in the log.
    given_up: int
    hidden: int
    lost: int
    doubled: int
    # Transactions that were seen in part.
    torn: int
    # Records of transactions that were aborted, as their copiers were told.
    aborted_read: int
    # Transactions that were committed, as their copiers were told, and not seen.
    missing: int
    # Records that a reader saw otherwise, who read while brokers died.
    read_differently: int

    @property
    def is_good(self) -> bool:
        return not (
            self.lost
            or self.doubled
            or self.torn
            or self.aborted_read
            or self.missing
            or self.read_differently
        )


def judge(
    values: Iterable[bytes],
    committed: Sequence[Copied],
    meanwhile: Sequence[Copied],
    in_log: int,
    notes: Mapping[str, str],
) -> Verdict:
    """Judge what was read of the target in the end, and by who read `meanwhile`.

    `values` were to be passed on; `in_log` counts records in the target with those of aborted
    transactions; `notes` are outcomes that copiers were told, by the names of transactions.
    """
    wanted, found = Counter(values), Counter(each.value for each in committed)
    seen = Counter(each.transaction for each in committed if each.transaction is not None)
    aborted = {name for name, outcome in notes.items() if outcome == ABORTED}
    return Verdict(
        records=len(committed),
        transactions=len(seen),
        given_up=len(aborted),
        hidden=in_log - len(committed),
        lost=(wanted - found).total(),
        doubled=(found - wanted).total(),
        torn=sum(count != _size(name) for name, count in seen.items()),
        aborted_read=sum(count for name, count in seen.items() if name in aborted),
        missing=sum(outcome == COMMITTED and name not in seen for name, outcome in notes.items()),
        read_differently=(Counter(committed) - Counter(meanwhile)).total()
        + (Counter(meanwhile) - Counter(committed)).total(),
    )


def _size(transaction: str) -> int:
    """How many records it has when it is whole."""
    return int(transaction.rpartition("/")[2])
