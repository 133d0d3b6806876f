"""Which messages of controllers a broker acts on."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.cluster.controller_fence import ControllerFence


def refusal(fence, controller_epoch, broker_epoch):
    with pytest.raises(OttlaError) as caught:
        fence.check(1, controller_epoch, broker_epoch)
    return caught.value.code


def test_controller_of_the_past_is_refused():
    """S14: who was succeeded gives no orders."""
    fence = ControllerFence()
    fence.registered(1)
    fence.check(1, 5, 1)
    assert refusal(fence, 4, 1) == ErrorCode.STALE_CONTROLLER_EPOCH
    fence.check(2, 6, 1)


def test_orders_to_an_earlier_life_are_refused():
    """S13: as soon as the registration is gone, and for ever."""
    fence = ControllerFence()
    fence.registered(3)
    fence.check(1, 1, 3)
    fence.unregistered()
    assert refusal(fence, 1, 3) == ErrorCode.STALE_BROKER_EPOCH
    fence.registered(4)
    assert refusal(fence, 1, 3) == ErrorCode.STALE_BROKER_EPOCH
    fence.check(1, 1, 4)


def test_registration_that_takes_many_attempts_is_known_by_its_own_epoch():
    """Each attempt whose answer is lost finds the registration gone; the epoch grows but once."""
    fence = ControllerFence()
    fence.registered(1)
    for _ in range(4):
        fence.unregistered()
    fence.registered(2)
    assert fence.broker_epoch == 2
    fence.check(1, 1, 2)


def test_orders_to_a_registration_that_is_not_known_yet_are_to_come_again():
    """Its roles would be dropped in the moment in which the store's answer is there."""
    fence = ControllerFence()
    assert refusal(fence, 1, 1) == ErrorCode.STALE_BROKER_EPOCH
    fence.registered(1)
    fence.check(1, 1, 1)
    assert refusal(fence, 1, 2) == ErrorCode.STALE_BROKER_EPOCH
    fence.unregistered()
    assert refusal(fence, 1, 2) == ErrorCode.STALE_BROKER_EPOCH
    fence.registered(2)
    fence.check(1, 1, 2)
