"""The interfaces through which a partition notifies waiting fetches and fetch sessions."""

from typing import Protocol


class Waiter(Protocol):
    """A fetch that waits for more records."""

    def wake(self) -> None:
        """Check, once per turn of the loop, whether there are enough records."""
        ...


class Watcher(Protocol):
    """A follower's fetch session, as one partition sees it."""

    def on_appended(self) -> None:
        """Note records not yet sent to the follower, or a log start that cannot wait."""
        ...

    def on_committed(self) -> None:
        """Note that the high watermark or the log start has changed."""
        ...

    def on_role(self) -> None:
        """Note a change of role: the answer decided for the last fetch is void."""
        ...
