"""Who hears of what happens to a partition: as interfaces, since most of them know partitions."""

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from ottla.broker.partition import Partition


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


class Roles(Protocol):
    """Carries out what a partition's role asks for; `broker.replication.roles` is one."""

    def on_own_end(self, partition: "Partition", own_end: int) -> None:
        """The log holds everything below `own_end`: flushed, with group commit."""
        ...

    def on_failure(self, partition: "Partition") -> None:
        """The log is out of use."""
        ...
