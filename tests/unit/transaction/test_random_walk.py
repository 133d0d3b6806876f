"""Whatever is delayed, repeated or killed, a transaction is there as a whole or not at all.

A failing seed is its own reproduction: `World(seed).run(STEPS)`. Each mutant takes one rule away,
and has to be found.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from ottla.storage.producers.state import ProducerStates
from ottla.transaction import end_txn, init_producer_id
from ottla.transaction.coordinator import TransactionCoordinator
from ottla.transaction.transaction import (
    Transaction,
    TransactionDecision,
    TransactionState,
    TransactionVerdict,
)
from tests.unit.transaction.world import BrokenLawError, World

STEPS = 400
SEEDS = 60
# A mutant that is not found by then is not found.
MUTANT_SEEDS = 400


@pytest.mark.parametrize("seed", range(SEEDS))
def test_no_transaction_is_torn_or_lost(seed: int) -> None:
    """Nor is anything of an aborted one seen, and none hangs."""
    World(seed).run(STEPS)


def test_the_walk_reaches_what_it_is_for() -> None:
    """Commits and aborts are many, and some ends stay unknown."""
    outcomes = []
    for seed in range(10):
        world = World(seed)
        world.run(STEPS)
        outcomes += [sent.outcome for sent in world.transactions if sent.values]
    assert outcomes.count(True) > 50
    assert outcomes.count(False) > 20
    assert outcomes.count(None) > 10


Mutate = Callable[[pytest.MonkeyPatch], None]


def _epoch_stays(patch: pytest.MonkeyPatch) -> None:
    """The end of a transaction does not raise the epoch (S22, before KIP-890)."""

    def end(
        known: Transaction, wish: end_txn.End, _fresh: object, now_ms: int
    ) -> TransactionVerdict:
        return end_txn._end_with_same_epoch(known, wish, now_ms)

    patch.setattr(end_txn, "_end_with_next_epoch", end)


def _late_end(patch: pytest.MonkeyPatch) -> None:
    """An end is taken whatever epoch it names (S22)."""
    right = end_txn._end_with_next_epoch

    def end(
        known: Transaction, wish: end_txn.End, fresh: int | None, now_ms: int
    ) -> TransactionVerdict:
        return right(known, wish._replace(identity=known.identity), fresh, now_ms)

    patch.setattr(end_txn, "_end_with_next_epoch", end)


def _prepared_is_forgotten(patch: pytest.MonkeyPatch) -> None:
    """A new coordinator does not go on with what was decided (S23)."""
    patch.setattr(TransactionCoordinator, "start", lambda _self: TransactionDecision())


def _zombies_live(patch: pytest.MonkeyPatch) -> None:
    """Who begins anew fences nobody (S24)."""
    right = init_producer_id.initialize

    def initialize(*arguments: Any) -> TransactionVerdict:
        verdict = right(*arguments)
        known = arguments[0]
        if verdict.to is None or known is None or verdict.to.state is not TransactionState.EMPTY:
            return verdict
        same = replace(verdict.to, producer_epoch=known.producer_epoch)
        return verdict._replace(to=same, identity=same.identity)

    patch.setattr(init_producer_id, "initialize", initialize)


def _late_marker(patch: pytest.MonkeyPatch) -> None:
    """A marker that comes twice ends the next transaction, too (S25)."""
    patch.setattr(ProducerStates, "check_marker", lambda *_, **__: True)


def _no_abort(patch: pytest.MonkeyPatch) -> None:
    """What takes too long is never aborted."""
    patch.setattr(end_txn, "is_overdue", lambda *_: False)


def _joins_the_last(patch: pytest.MonkeyPatch) -> None:
    """A transaction is added to while the one before is being marked."""
    right = end_txn._check

    def check(known: Any, identity: Any) -> TransactionVerdict | None:
        verdict = right(known, identity)
        return None if verdict is not None and verdict.waits else verdict

    patch.setattr(end_txn, "_check", check)


@pytest.mark.parametrize(
    "mutate",
    [
        _epoch_stays,
        _late_end,
        _prepared_is_forgotten,
        _zombies_live,
        _late_marker,
        _no_abort,
        _joins_the_last,
    ],
)
def test_a_mutant_is_found(mutate: Mutate, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each rule is there for a reason, which a walk without it shows."""
    mutate(monkeypatch)
    for seed in range(MUTANT_SEEDS):
        try:
            World(seed).run(STEPS)
        except (BrokenLawError, AssertionError, RecursionError):
            return
    pytest.fail("the walk does not notice that the rule is missing")
