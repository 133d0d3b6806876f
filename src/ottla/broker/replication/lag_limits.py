"""How long a follower may lag or be silent before its leader proposes it out of the ISR."""

from typing import NamedTuple

from ottla.base.settings import BrokerSettings

# How often followers are checked within the time that they may be silent.
_LOOKS = 20


class LagLimits(NamedTuple):
    """Limits in milliseconds. `look_every_ms` is the interval between checks of the followers."""

    lag_ms_max: int
    silence_ms_max: int
    look_every_ms: float


def lag_limits(settings: BrokerSettings) -> LagLimits:
    """The limits that follow from the broker's settings."""
    lag_ms_max = settings.integer("replica.lag.time.max.ms")
    silence_ms_max = _silence_ms_max(
        settings.integer("broker.session.timeout.ms"),
        settings.integer("replica.fetch.wait.max.ms"),
    )
    look_every_ms = lag_ms_max / 2
    if silence_ms_max < lag_ms_max:
        look_every_ms = min(look_every_ms, silence_ms_max / _LOOKS)
    return LagLimits(lag_ms_max, silence_ms_max, max(look_every_ms, 1.0))


def _silence_ms_max(session_ms: int, wait_ms_max: int) -> int:
    """The longest silence: three quarters of a session, half of it for a fetch after an answer.

    What was heard last is the fetch before that, which may have waited here so long. It is less
    than a session: a broker that is cut off keeps its session until its store has missed it, and
    clients have yet to find the next leader.
    """
    silence_ms = session_ms * 3 // 4
    return silence_ms + max(0, wait_ms_max - silence_ms // 2)
