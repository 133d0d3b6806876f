"""The heartbeat interval and session timeout of a group."""

from typing import NamedTuple


class Pace(NamedTuple):
    """The heartbeat interval and the session timeout of a group's members.

    `session_setting` is the setting of the session timeout.
    """

    session_timeout_ms: int
    heartbeat_interval_ms: int
    session_setting: str = "group.consumer.session.timeout.ms"

    @property
    def session_limit(self) -> str:
        """The setting of the session timeout, with its value."""
        return f"{self.session_setting}={self.session_timeout_ms}"
