"""Which deleted offsets are a loss: positions decide."""

import pytest

from ottla.lake.model.plan import PartitionBounds, deleted_at, gone_before, losses
from ottla.ledger.partition import PartitionLedger


@pytest.mark.parametrize(
    ("positions", "start", "deleted", "expected"),
    [
        ({}, 10, 0, 0),  # A first load from the log's start.
        ({}, 10, 5, 5),  # Retention passed by after its plan.
        ({}, 4, 6, 0),  # It was to start below the log's start.
        ({}, 4, 9, 3),
        ({0: 4}, 4, 6, 6),  # The table stood below the log's start.
        ({0: 10}, 10, 0, 0),
        ({0: 10}, 10, 90, 90),
    ],
)
def test_loss_is_what_was_there_to_be_loaded(
    positions: dict[int, int], start: int, deleted: int, expected: int
) -> None:
    """A position, or else the log's start at the plan, is the line below which nothing counts."""
    gone_below = gone_before({0: PartitionBounds(10, 100)}, positions)
    found = losses([PartitionLedger(0, start, 100, deleted=deleted)], gone_below)
    assert sum(found.values()) == expected


def test_a_plan_knows_what_is_gone_already() -> None:
    assert deleted_at(4, 100, 0, PartitionBounds(10, 100)).deleted == 6
    assert deleted_at(4, 8, 0, PartitionBounds(10, 100)).deleted == 4
    assert deleted_at(20, 100, 0, PartitionBounds(10, 100)).deleted == 0
