"""Which open transactions hang."""

from ottla.base.ids import TopicPartition
from ottla.client.admin.transactions import OpenTransaction, TransactionDescription
from ottla.diagnosis.transactions import StableDiagnosis, hanging

PARTITION = TopicPartition("t", 0)
KNOWN = TransactionDescription("loader", 1, 7, 0, "Ongoing", 60_000, 0, (PARTITION,))


def opened(offset: int, last_ms: int, known: TransactionDescription | None) -> OpenTransaction:
    return OpenTransaction(PARTITION, offset, 7, 0, 0, last_ms, known)


def test_a_transaction_hangs_that_no_coordinator_knows_and_nothing_writes_to() -> None:
    """One that was written to lately may be about to reach its coordinator."""
    old, young = opened(3, 1_000, None), opened(9, 50_001, None)
    known = opened(5, 1_000, KNOWN)
    assert hanging([old, known, young], older_than_ms=10_000, now_ms=60_000) == [old]
    assert hanging([old, young], older_than_ms=9_999, now_ms=60_000) == [old, young]


def test_what_is_held_back_lies_between_stable_offset_and_high_watermark() -> None:
    """Nothing, where no transaction is open."""
    assert StableDiagnosis(3, 10, [opened(3, 0, KNOWN)]).held_back == 7
    assert StableDiagnosis(10, 10, []).held_back == 0
