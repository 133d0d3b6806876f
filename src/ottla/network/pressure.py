"""Decides when a connection is read, paused and ended, by a table of states. Does no I/O.

Requests are received and served only in the state READING. Any reason of `Pause` stops both, and
several reasons may hold at once. When the last one ends, kept requests are served before more
bytes are read. In the state CLOSING this side has closed the connection; in LOST it has ended.
"""

from enum import Enum, IntEnum, IntFlag
from typing import Final


class Pause(IntFlag):
    """The reasons not to read a connection."""

    # The service has put a request aside until it can serve it.
    HELD = 1
    # A quota is exceeded, or new connections come too fast: nothing is served for some time.
    MUTED = 2
    # A large request waits for memory in the budget of all connections.
    MEMORY = 4
    # Too many requests are unanswered.
    UNANSWERED = 8
    # The client reads more slowly than it requests.
    OUTPUT = 16
    # The broker is stopping, and serves no more requests.
    STOPPING = 32


# A state is a number: READING (0), a sum of reasons, CLOSING or LOST. So the hot loop can test
# `if pressure.state:`.
READING: Final = 0
CLOSING: Final = 64
LOST: Final = 65


class Event(IntEnum):
    """The events that change the state of a connection, or need a reaction of it."""

    RECEIVED = 0
    HELD = 1
    RELEASED = 2
    MUTED = 3
    UNMUTED = 4
    MEMORY_SHORT = 5
    MEMORY_GIVEN = 6
    UNANSWERED_FULL = 7
    UNANSWERED_ROOM = 8
    OUTPUT_BLOCKED = 9
    OUTPUT_DRAINED = 10
    STOPPING = 11
    CLOSED = 12
    LOST = 13


class Effect(Enum):
    """The reaction of a connection to an event."""

    NOTHING = "nothing"
    SERVE = "serve what was received"
    KEEP = "keep what was received, and stop reading: the transport read in spite of the pause"
    DROP = "drop what was received"
    PAUSE = "stop reading"
    GO_ON = "serve what was kept, then read again"
    RETURN = "give the memory back: the request will not come"
    CLOSE = "close the transport, and log why"
    END = "let go of everything"
    FORBIDDEN = "never: a mistake in the connection or its service"


class Cell(Enum):
    """The table's entry for an event in a state."""

    STAY = "no change"
    ADD = "one reason more; PAUSE if it is the first"
    TAKE = "this reason is gone; GO_ON if it was the last"
    SERVE = "no change, and SERVE"
    KEEP = "no change, and KEEP"
    DROP = "no change, and DROP"
    RETURN = "no change, and RETURN"
    CLOSE = "CLOSING, and CLOSE"
    END = "LOST, and END"
    NEVER = "forbidden"


STAY, ADD, TAKE, SERVE, KEEP, DROP, RETURN, CLOSE, END, NEVER = Cell

_NO_REASON = Pause(0)

# fmt: off
TABLE: Final[dict[Event, tuple[Pause, Cell, Cell, Cell, Cell, Cell]]] = {
    # event                  its reason        READING  paused for    paused for   CLOSING  LOST
    #                                                   others only   this, too
    Event.RECEIVED:        ( _NO_REASON,       SERVE,   KEEP,         KEEP,        DROP,    NEVER ),
    Event.HELD:            ( Pause.HELD,       ADD,     ADD,          NEVER,       STAY,    NEVER ),
    Event.RELEASED:        ( Pause.HELD,       STAY,    STAY,         TAKE,        STAY,    STAY  ),
    Event.MUTED:           ( Pause.MUTED,      ADD,     ADD,          STAY,        STAY,    STAY  ),
    Event.UNMUTED:         ( Pause.MUTED,      NEVER,   NEVER,        TAKE,        STAY,    NEVER ),
    Event.MEMORY_SHORT:    ( Pause.MEMORY,     ADD,     NEVER,        NEVER,       NEVER,   NEVER ),
    Event.MEMORY_GIVEN:    ( Pause.MEMORY,     NEVER,   NEVER,        TAKE,        RETURN,  RETURN),
    Event.UNANSWERED_FULL: ( Pause.UNANSWERED, ADD,     ADD,          NEVER,       STAY,    NEVER ),
    Event.UNANSWERED_ROOM: ( Pause.UNANSWERED, STAY,    STAY,         TAKE,        STAY,    STAY  ),
    Event.OUTPUT_BLOCKED:  ( Pause.OUTPUT,     ADD,     ADD,          STAY,        STAY,    STAY  ),
    Event.OUTPUT_DRAINED:  ( Pause.OUTPUT,     STAY,    STAY,         TAKE,        STAY,    STAY  ),
    Event.STOPPING:        ( Pause.STOPPING,   ADD,     ADD,          STAY,        STAY,    STAY  ),
    Event.CLOSED:          ( _NO_REASON,       CLOSE,   CLOSE,        CLOSE,       STAY,    STAY  ),
    Event.LOST:            ( _NO_REASON,       END,     END,          END,         END,     NEVER ),
}
# fmt: on

STATES: Final = (*range(CLOSING), CLOSING, LOST)


def _step(event: Event, state: int) -> tuple[int, Effect]:
    """Look up the next state and the effect in the table."""
    reason, reading, others_only, this_too, closing, lost = TABLE[event]
    if state >= CLOSING:
        cell = closing if state == CLOSING else lost
    elif state == READING:
        cell = reading
    else:
        cell = this_too if state & reason else others_only
    match cell:
        case Cell.STAY:
            return state, Effect.NOTHING
        case Cell.ADD:
            return state | reason.value, Effect.PAUSE if state == READING else Effect.NOTHING
        case Cell.TAKE:
            left = state & ~reason.value
            return left, Effect.GO_ON if left == READING else Effect.NOTHING
        case Cell.CLOSE:
            return CLOSING, Effect.CLOSE
        case Cell.END:
            return LOST, Effect.END
        case Cell.NEVER:
            return state, Effect.FORBIDDEN
        case Cell.SERVE | Cell.KEEP | Cell.DROP | Cell.RETURN:
            return state, Effect[cell.name]


# Effects and next states by event and state, so that an event costs one look-up.
_STEPS: Final = tuple(tuple(_step(event, state) for state in STATES) for event in Event)


class Pressure:
    """The state of one connection."""

    __slots__ = ("state",)

    def __init__(self) -> None:
        self.state = READING

    def on(self, event: Event) -> Effect:
        """Handle `event`; return what the connection must do."""
        self.state, effect = _STEPS[event][self.state]
        assert effect is not Effect.FORBIDDEN, f"{event.name} in state {describe(self.state)}"
        return effect

    @property
    def is_open(self) -> bool:
        """Return whether the connection is neither closed by this side nor lost."""
        return self.state < CLOSING

    def is_paused_for(self, reason: Pause) -> bool:
        """Return whether `reason` is one of the reasons for the current pause."""
        return self.state < CLOSING and bool(self.state & reason.value)


def describe(state: int) -> str:
    """Return a state in words, for messages."""
    if state >= CLOSING:
        return "CLOSING" if state == CLOSING else "LOST"
    reasons = ", ".join(str(reason.name) for reason in Pause if state & reason)
    return f"paused for {reasons}" if reasons else "READING"
