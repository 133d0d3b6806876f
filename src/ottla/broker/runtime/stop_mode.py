"""The ways to stop a broker."""

from dataclasses import dataclass


@dataclass(slots=True)
class StopMode:
    """How to stop; set before the parts are left.

    A broker whose start fails stops as after a crash.
    """

    # Whether to flush all appended records.
    clean: bool = False
    # Whether to move leadership to other brokers first.
    hands_over: bool = False
