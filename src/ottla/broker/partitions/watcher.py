"""The interfaces through which a partition notifies waiting fetches and fetch sessions."""

from typing import Protocol


class Waiter(Protocol):
    """A fetch that waits for more records."""

    def wake(self) -> None:
        """Look, once per turn of the loop, whether there is enough now."""
        ...


class Watcher(Protocol):
    """A follower's fetch session, as far as one partition of it is concerned."""

    def on_appended(self) -> None:
        """Note records not yet sent to the follower, or a log start that cannot wait."""
        ...

    def on_committed(self) -> None:
        """Note that the high watermark or the log start has moved."""
        ...

    def on_role(self) -> None:
        """Note a change of role: the answer decided for the last fetch is void."""
        ...
