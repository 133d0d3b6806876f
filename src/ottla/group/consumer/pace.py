"""How often the members of a group report."""

from typing import NamedTuple


class Pace(NamedTuple):
    """How often members of a group report, and after which silence they are out.

    `session_setting` is the name of the setting that says the latter.
    """

    session_timeout_ms: int
    heartbeat_interval_ms: int
    session_setting: str = "group.consumer.session.timeout.ms"

    @property
    def session_limit(self) -> str:
        """The setting that says when a silent member is out, with its value."""
        return f"{self.session_setting}={self.session_timeout_ms}"
