"""Which topics a member may see: those that a pattern finds for it.

Not in the log: a coordinator knows it of a member from its first heartbeat on.
"""

from typing import Protocol


class Sight(Protocol):
    """What a member's client may see at one moment; equal ones see the same topics."""

    def __call__(self, topic: str, /) -> bool:
        """Whether it may see the topic."""
        ...


def sees_all(_topic: str) -> bool:
    """The sight of clients that are not checked."""
    return True
