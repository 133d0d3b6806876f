"""How a broker is to stop."""

from dataclasses import dataclass


@dataclass(slots=True)
class StopMode:
    """Set before the parts are left; a broker whose start fails stops as after a crash."""

    # Whether to flush all that was appended.
    clean: bool = False
    # Whether to move leadership to other brokers first.
    hands_over: bool = False
