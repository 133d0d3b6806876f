"""Who hears of what happens to a partition, as the partition knows them."""

from typing import Protocol


class Waiter(Protocol):
    """A fetch that waits for more records."""

    def wake(self) -> None:
        """There may be enough now; looked at once per turn."""
        ...


class Watcher(Protocol):
    """A follower's fetch session, as far as one partition of it is concerned."""

    def on_appended(self) -> None:
        """There are records it has not been sent, or a log start that cannot wait."""
        ...

    def on_committed(self) -> None:
        """The high watermark or the log's start has moved."""
        ...

    def on_role(self) -> None:
        """What was said about its last fetch holds no more."""
        ...
