"""The table of a connection's states: every event in every state."""

import contextlib
import random

import pytest

from ottla.network.pressure import (
    CLOSING,
    LOST,
    READING,
    STATES,
    TABLE,
    Effect,
    Event,
    Pause,
    Pressure,
    describe,
)

NOTHING, PAUSE, GO_ON, FORBIDDEN = Effect.NOTHING, Effect.PAUSE, Effect.GO_ON, Effect.FORBIDDEN

# The events that give a reason to pause, and those that take it away again.
PAUSES = {
    Event.HELD: 1,
    Event.MUTED: 2,
    Event.MEMORY_SHORT: 4,
    Event.UNANSWERED_FULL: 8,
    Event.OUTPUT_BLOCKED: 16,
    Event.STOPPING: 32,
}
ENDS_OF_PAUSES = {
    Event.RELEASED: 1,
    Event.UNMUTED: 2,
    Event.MEMORY_GIVEN: 4,
    Event.UNANSWERED_ROOM: 8,
    Event.OUTPUT_DRAINED: 16,
}
# The events that a connection, its service and its transport never bring about: where reading is
# not stopped by it, where it is already, in CLOSING and in LOST.
NEVER = {
    Event.RECEIVED: (False, False, False, True),
    Event.HELD: (False, True, False, True),
    Event.RELEASED: (False, False, False, False),
    Event.MUTED: (False, False, False, False),
    Event.UNMUTED: (True, False, False, True),
    # Memory is asked for in READING alone.
    Event.MEMORY_SHORT: (False, True, True, True),
    Event.MEMORY_GIVEN: (True, False, False, False),
    Event.UNANSWERED_FULL: (False, True, False, True),
    Event.UNANSWERED_ROOM: (False, False, False, False),
    Event.OUTPUT_BLOCKED: (False, False, False, False),
    Event.OUTPUT_DRAINED: (False, False, False, False),
    Event.STOPPING: (False, False, False, False),
    Event.CLOSED: (False, False, False, False),
    Event.LOST: (False, False, False, True),
}

whole_table = pytest.mark.parametrize("event", list(Event), ids=lambda event: event.name)


def step(event: Event, state: int) -> tuple[int, Effect]:
    """The next state and the effect; a forbidden event is an assertion and changes nothing."""
    pressure = Pressure()
    pressure.state = state
    effect = FORBIDDEN
    with contextlib.suppress(AssertionError):
        effect = pressure.on(event)
    return pressure.state, effect


def test_the_table_has_every_event_and_a_state_for_every_set_of_reasons() -> None:
    """66 states: READING, 63 sets of reasons to pause, CLOSING and LOST."""
    assert list(TABLE) == list(Event)
    assert list(STATES) == list(range(66))
    assert (READING, CLOSING, LOST) == (0, 64, 65)
    assert [reason.value for reason in Pause] == [1, 2, 4, 8, 16, 32]


@whole_table
def test_a_mistake_is_an_assertion(event: Event) -> None:
    """In just those states in which the event cannot happen."""
    reason = PAUSES.get(event, 0) | ENDS_OF_PAUSES.get(event, 0)
    without, with_it, closing, lost = NEVER[event]
    for state in range(CLOSING):
        expected = with_it if state & reason else without
        if event is Event.MEMORY_SHORT and state != READING:
            expected = True
        assert (step(event, state)[1] is FORBIDDEN) == expected, describe(state)
    assert (step(event, CLOSING)[1] is FORBIDDEN) == closing
    assert (step(event, LOST)[1] is FORBIDDEN) == lost
    for state in STATES:
        after, effect = step(event, state)
        assert effect is not FORBIDDEN or after == state


def test_the_message_of_a_mistake_names_event_and_state() -> None:
    """It is read in a log, after the connection is gone."""
    pressure = Pressure()
    pressure.on(Event.HELD)
    pressure.on(Event.MUTED)
    with pytest.raises(AssertionError, match="HELD in state paused for HELD, MUTED"):
        pressure.on(Event.HELD)


@pytest.mark.parametrize("event", PAUSES, ids=lambda event: event.name)
def test_the_first_reason_stops_the_reading(event: Event) -> None:
    """Another one only adds itself, and the same one again changes nothing."""
    reason = PAUSES[event]
    assert step(event, READING) == (reason, PAUSE)
    for state in range(1, CLOSING):
        after, effect = step(event, state)
        if effect is not FORBIDDEN:
            assert (after, effect) == (state | reason, NOTHING)


@pytest.mark.parametrize("event", ENDS_OF_PAUSES, ids=lambda event: event.name)
def test_reading_goes_on_when_the_last_reason_is_gone(event: Event) -> None:
    """Not before; the end of a pause that is not there changes nothing."""
    reason = ENDS_OF_PAUSES[event]
    assert step(event, reason) == (READING, GO_ON)
    for state in range(CLOSING):
        after, effect = step(event, state)
        if state & reason and state != reason:
            assert (after, effect) == (state - reason, NOTHING)
        elif not state & reason and effect is not FORBIDDEN:
            assert (after, effect) == (state, NOTHING)


def test_only_a_connection_that_is_read_serves_what_it_receives() -> None:
    """While it is paused it keeps that, and stops a transport that reads on; closing drops it."""
    assert step(Event.RECEIVED, READING) == (READING, Effect.SERVE)
    for state in range(1, CLOSING):
        assert step(Event.RECEIVED, state) == (state, Effect.KEEP)
    assert step(Event.RECEIVED, CLOSING) == (CLOSING, Effect.DROP)


def test_a_connection_is_closed_once_and_lost_once() -> None:
    """From any state; only the first close is logged, and a close after the loss is nothing."""
    for state in range(CLOSING):
        assert step(Event.CLOSED, state) == (CLOSING, Effect.CLOSE)
        assert step(Event.LOST, state) == (LOST, Effect.END)
    assert step(Event.CLOSED, CLOSING) == (CLOSING, NOTHING)
    assert step(Event.LOST, CLOSING) == (LOST, Effect.END)
    assert step(Event.CLOSED, LOST) == (LOST, NOTHING)


@whole_table
def test_a_connection_that_is_closed_is_never_read_again(event: Event) -> None:
    """CLOSING is left for LOST alone, LOST for nothing; neither pauses nor goes on."""
    for state in (CLOSING, LOST):
        after, effect = step(event, state)
        assert after == (LOST if event is Event.LOST else state)
        assert effect not in {PAUSE, GO_ON, Effect.SERVE, Effect.KEEP}


def test_memory_that_comes_too_late_is_given_back() -> None:
    """The budget took it for a request that nobody sends to its end."""
    assert step(Event.MEMORY_GIVEN, CLOSING) == (CLOSING, Effect.RETURN)
    assert step(Event.MEMORY_GIVEN, LOST) == (LOST, Effect.RETURN)


def test_a_state_says_what_it_is() -> None:
    """The names of its reasons, for the messages of assertions and for what asks about one."""
    pressure = Pressure()
    assert pressure.is_open
    pressure.on(Event.MUTED)
    pressure.on(Event.OUTPUT_BLOCKED)
    assert pressure.is_paused_for(Pause.MUTED)
    assert not pressure.is_paused_for(Pause.HELD)
    assert describe(pressure.state) == "paused for MUTED, OUTPUT"
    pressure.on(Event.CLOSED)
    # The number of CLOSING and LOST is not read as a set of reasons.
    assert not any(pressure.is_paused_for(reason) for reason in Pause)
    pressure.on(Event.LOST)
    assert not any(pressure.is_paused_for(reason) for reason in Pause)
    assert not pressure.is_open


class Model:
    """What the table means: a set of reasons, and how far the connection's life has come."""

    def __init__(self) -> None:
        self.reasons: set[int] = set()
        self.life = "open"

    def happen(self, event: Event) -> None:
        if event is Event.LOST:
            self.life = "lost"
        elif self.life == "open":
            if event is Event.CLOSED:
                self.life = "closing"
            elif event in PAUSES:
                self.reasons.add(PAUSES[event])
            elif event in ENDS_OF_PAUSES:
                self.reasons.discard(ENDS_OF_PAUSES[event])

    @property
    def state(self) -> int:
        if self.life == "open":
            return sum(self.reasons)
        return CLOSING if self.life == "closing" else LOST


@pytest.mark.parametrize("seed", range(20))
def test_any_story_is_that_of_a_set_of_reasons(seed: int) -> None:
    """A transport that does what the effects say is read just while there is no reason against."""
    chance = random.Random(seed)
    for _ in range(50):
        pressure, model, reads = Pressure(), Model(), True
        events = [event for event in Event if event not in {Event.CLOSED, Event.LOST}]
        for number in range(60):
            event = chance.choice(events if number < 40 else list(Event))
            if step(event, pressure.state)[1] is FORBIDDEN:
                continue
            effect = pressure.on(event)
            model.happen(event)
            assert pressure.state == model.state
            if effect is PAUSE:
                assert reads
                reads = False
            elif effect is GO_ON:
                assert not reads
                reads = True
            if pressure.is_open:
                assert reads == (not model.reasons)
