"""Which role a state gives a broker."""

import pytest

from ottla.metadata.image import NO_LEADER, PartitionImage
from ottla.replica.transition import Transition, transition

from .parts import BROKER_EPOCH, EPOCH, ONE, THREE, TWO, image


@pytest.mark.parametrize(
    ("state", "what"),
    [
        (image(version=5), Transition.UPDATE),
        (image(version=4), Transition.IGNORE),
        (image(version=9)._replace(leader_epoch=EPOCH - 1), Transition.IGNORE),
        (image(version=5)._replace(leader_epoch=EPOCH + 1), Transition.LEAD),
        (image(version=5)._replace(leader_epoch=EPOCH + 1, leader=TWO), Transition.FOLLOW),
        (image(version=5)._replace(leader_epoch=EPOCH + 1, leader=NO_LEADER), Transition.WAIT),
        (image(version=5)._replace(replicas=(TWO, THREE)), Transition.LEAVE),
        # Elected for an earlier registration of this broker, which may have had more records.
        (
            image(version=5)._replace(leader_epoch=EPOCH + 1, leader_broker_epoch=6),
            Transition.WAIT,
        ),
    ],
)
def test_epoch_and_version_tell_what_is_new(state: PartitionImage, what: Transition) -> None:
    """R-9: an older state is not acted on, a newer one wholly."""
    assert transition(ONE, BROKER_EPOCH, EPOCH, 4, state) is what


def test_the_first_state_is_always_new() -> None:
    """A broker that has just registered knows of no term."""
    assert transition(ONE, BROKER_EPOCH, -1, -1, image(version=0)) is Transition.LEAD
