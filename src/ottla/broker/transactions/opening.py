"""Asks, before a transaction's first batch in a partition, whether its coordinator has it open.

The answer holds until a marker stands in the partition (KIP-890): where one comes between
question and answer it may have been this transaction's end, and the question is asked again.
"""

from collections.abc import Callable
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.broker.partitions.partition import Partition
from ottla.broker.transactions.enlisting import Codes, Enlisting
from ottla.storage.producers.state import Guard
from ottla.transaction.transaction import Identity

# A marker comes between once, for the transaction before.
_QUESTIONS_MAX = 3

OnAnswer = Callable[[Guard | ErrorCode], None]


class _Question(NamedTuple):
    """What is asked. `adds`: the partition is made a part of the transaction."""

    partition: Partition
    transactional_id: str
    identity: Identity
    adds: bool


class Openings:
    """All questions that are not answered yet.

    Who asks what is being asked already waits with the first, so that the batches of a producer
    are appended in the order of their coming.
    """

    def __init__(self, enlisting: Enlisting) -> None:
        self._enlisting = enlisting
        self._waiting: dict[_Question, list[OnAnswer]] = {}

    def is_needed(
        self, partition: Partition, transactional_id: str, identity: Identity, *, adds: bool
    ) -> bool:
        """Whether to `ask`; where not, the transaction has records in the partition already."""
        question = _Question(partition, transactional_id, identity, adds)
        return question in self._waiting or not partition.log.producers.is_open(*identity)

    def ask(
        self,
        partition: Partition,
        transactional_id: str,
        identity: Identity,
        *,
        adds: bool,
        on_answer: OnAnswer,
    ) -> None:
        """Give `on_answer` the guard to append with, or why nothing may be appended."""
        question = _Question(partition, transactional_id, identity, adds)
        waiting = self._waiting.get(question)
        if waiting is not None:
            waiting.append(on_answer)
        else:
            self._waiting[question] = [on_answer]
            self._ask(question, 1)

    def _ask(self, question: _Question, count: int) -> None:
        name = question.partition.topic_partition
        producer_id = question.identity.producer_id
        guard = question.partition.log.producers.guard(producer_id)

        def told(codes: Codes) -> None:
            code = codes.get(name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            if code is not ErrorCode.NONE:
                self._answer(question, code)
            elif (
                question.partition.log.producers.is_guarded(producer_id, guard)
                or count == _QUESTIONS_MAX
            ):
                self._answer(question, guard)
            else:
                self._ask(question, count + 1)

        self._enlisting.ask(
            question.transactional_id,
            question.identity,
            frozenset({name}),
            adds=question.adds,
            on_answer=told,
        )

    def _answer(self, question: _Question, answer: Guard | ErrorCode) -> None:
        for on_answer in self._waiting.pop(question):
            on_answer(answer)
