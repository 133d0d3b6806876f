"""The order of answers, without a socket."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.network.answer_order import AnswerOrder, Place
from ottla.wire.parts import Part


def hold(parts: list[Part]) -> list[Part]:
    return list(parts)


class World:
    """An order, and how often it said that something is ready."""

    def __init__(self, requests_max: int = 100, bytes_max: int = 1000) -> None:
        self.called = 0
        self.order: AnswerOrder[Part] = AnswerOrder(
            hold, self.count, requests_max=requests_max, bytes_max=bytes_max
        )

    def count(self) -> None:
        self.called += 1

    def sent(self) -> list[Part]:
        """As a connection takes them."""
        ready, self.order.ready = self.order.ready, []
        return ready


def test_an_answer_that_is_found_at_once_is_ready() -> None:
    """Nothing waits before it, so the connection needs no call to send it."""
    world = World()
    world.order.add([b"one"])
    world.order.add([b"two", b"2"])
    assert world.sent() == [b"one", b"two", b"2"]
    assert world.called == 0


def test_an_answer_waits_for_those_of_earlier_requests() -> None:
    """Whether it was found at once or later."""
    world = World()
    first, second = world.order.reserve(10), world.order.reserve(10)
    world.order.add([b"three"])
    second.answer([b"two"])
    assert (world.sent(), world.called) == ([], 0)
    first.answer([b"one"])
    assert (world.sent(), world.called) == ([b"one", b"two", b"three"], 1)


def test_a_request_without_an_answer_holds_nothing_up() -> None:
    """acks=0 needs no place; an answer of no parts gives a place up."""
    world = World()
    first = world.order.reserve(10)
    world.order.add(None)
    world.order.add([])
    world.order.add([b"two"])
    first.answer([])
    assert (world.sent(), world.called) == ([b"two"], 1)
    assert not world.order.places


@given(st.data())
def test_answers_leave_in_the_order_of_requests(data: st.DataObject) -> None:
    """However they are found, and whenever they are sent."""
    world = World()
    open_places: list[tuple[int, Place[Part]]] = []
    expected, unsent = [], []
    for number in range(data.draw(st.integers(min_value=1, max_value=20))):
        kind = data.draw(st.sampled_from(["at once", "later", "no answer"]))
        if kind == "later":
            open_places.append((number, world.order.reserve(1)))
        else:
            world.order.add([b"%d" % number] if kind == "at once" else None)
        if kind != "no answer":
            expected.append(b"%d" % number)
        if open_places and data.draw(st.booleans()):
            which = data.draw(st.integers(min_value=0, max_value=len(open_places) - 1))
            answered, place = open_places.pop(which)
            place.answer([b"%d" % answered])
        if data.draw(st.booleans()):
            unsent += world.sent()
        assert len(world.order.places) >= len(open_places)
    for answered, place in open_places:
        place.answer([b"%d" % answered])
    assert unsent + world.sent() == expected
    assert world.order.unanswered_bytes == 0


def test_it_is_full_of_requests() -> None:
    """Answers that wait for an earlier one count: the client has not got them."""
    world = World(requests_max=3)
    first = world.order.reserve(1)
    assert not world.order.add([b"two"])
    assert world.order.room == 1
    assert world.order.add([b"three"])
    assert world.order.room == 0
    first.answer([b"one"])
    assert not world.order.is_full
    assert world.order.room == 3


def test_it_is_full_of_bytes() -> None:
    """Those of requests whose answers are still to come."""
    world = World(bytes_max=100)
    first = world.order.reserve(60)
    assert not world.order.is_full
    world.order.reserve(40)
    assert world.order.is_full
    first.answer([b"one"])
    assert not world.order.is_full


def test_no_request_is_answered_twice() -> None:
    """That is a mistake of the service: the second would be taken for the next one's."""
    world = World()
    place = world.order.reserve(1)
    place.answer([b"one"])
    with pytest.raises(AssertionError, match="answered twice"):
        place.answer([b"once more"])


def test_an_answer_after_the_close_goes_nowhere() -> None:
    """A handler need not know whether the client is still there; nothing is held for it."""
    world = World()
    place = world.order.reserve(1)
    world.order.close()
    place.answer([b"too late"])
    assert (world.sent(), world.called) == ([], 0)
    assert world.order.abandon() == []


def test_abandoned_requests_are_told_and_unsent_answers_returned() -> None:
    """Each that waits is called once; an answered one is not; its pieces can be let go."""
    world = World()
    called: list[int] = []
    world.order.add([b"ready"])
    places = [world.order.reserve(1) for _ in range(3)]
    for number, place in enumerate(places):
        place.on_abandoned = lambda number=number: called.append(number)  # type: ignore[misc]
    places[1].answer([b"answered"])
    assert world.order.abandon() == [b"ready", b"answered"]
    assert called == [0, 2]
    assert world.order.abandon() == []
    assert called == [0, 2]
    assert world.order.is_closed
    assert not world.order.places


def test_an_abandoned_request_may_be_answered_by_its_own_callback() -> None:
    """The answer goes nowhere."""
    world = World()
    place = world.order.reserve(1)
    place.on_abandoned = lambda: place.answer([b"sorry"])
    assert world.order.abandon() == []
