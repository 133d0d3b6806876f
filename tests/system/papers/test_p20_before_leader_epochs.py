"""The two ways to lose records that leader epochs were made against, with and without them."""

from collections.abc import Callable

import pytest
from verify.walk.mutants.divergence import NoComparison, TruncateToHw
from verify.walk.stage import Stage
from verify.walk.violation import Violation
from verify.walk.world import SHIPPED, Build

from ottla.controller.election import Rules, elect_unclean
from tests.integration.scenarios.divergence import (
    s1_crash_and_immediate_election,
    s3_three_copies_and_one_crash,
)


class FollowsByHighWatermark(TruncateToHw):
    """Kafka before 0.11: a new follower cuts at its high watermark, and no epoch is compared."""

    term_class = NoComparison


class LossAllowed(Stage):
    """A stage on which committed records may be lost, as by an unclean election."""

    def check(self) -> None:
        """The scene alone says what it expects."""


def scenario_2(build: Build) -> None:
    """000's second scenario: m2 and m3 at one offset, and both replicas' high watermarks are 2."""
    stage = LossAllowed(build, replicas=(1, 2), brokers=2, min_isr=1)
    stage.produce(1)
    stage.pull(2, 2)
    stage.kill(2)
    stage.leave(2, 1)
    stage.produce(1)
    stage.expect(stage.node(1).high_watermark == 2, "m2 is committed by 1 alone")
    stage.kill(1)
    stage.expire(1)
    stage.plan()
    stage.restart(2)
    live = stage.world.store.live
    change = elect_unclean(stage.state, live, Rules(1, unclean=True), cause="asked for")
    assert change is not None
    # m2 is given up, knowingly: only m1 is still owed.
    del stage.world.committed.records[1:]
    stage.write(change.after)
    stage.tell(2)
    stage.produce(2)
    stage.expect(stage.node(2).high_watermark == 2, "m3 is committed by 2 alone")
    stage.restart(1, 1, 2)
    stage.heal(1, 2)
    stage.expect(stage.epochs(1) == stage.epochs(2), "m2 gave way to m3")


SCENES = (s1_crash_and_immediate_election, scenario_2, s3_three_copies_and_one_crash)


@pytest.mark.parametrize("scene", SCENES)
def test_nothing_is_lost_and_no_log_differs_by_leader_epochs(
    scene: Callable[[Build], None],
) -> None:
    """Loss, divergence, and two leaders lost in turn end well while fetching (P20, P21)."""
    scene(SHIPPED)


@pytest.mark.parametrize("scene", SCENES)
def test_cutting_at_the_high_watermark_fails(scene: Callable[[Build], None]) -> None:
    """Brokers that follow by high watermark lose records, or differ, in each (P20, P21)."""
    with pytest.raises(Violation):
        scene(Build(node=FollowsByHighWatermark))
