"""What every suite has: a name, what it needs, how it is fetched, and how it is run."""

import shutil
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from rig.java import have_java
from suites.result import Outcome, Result

# Brokers with ACLs, where a client that does not log in may do everything.
AUTHORIZER = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:ANONYMOUS",
}


@dataclass(frozen=True, slots=True)
class Side:
    """Where the clusters are that a suite runs against, and a folder for what it prints."""

    name: str
    bootstraps: tuple[str, ...]
    folder: Path

    @property
    def bootstrap(self) -> str:
        return self.bootstraps[0]


@dataclass(frozen=True, slots=True)
class Suite:
    """One suite. `settings` are those of the brokers, the same on both sides.

    `brokers` is 3, or 1 for tests that expect a single one, on `port` where they have its
    address built in; `clusters` is how many separate clusters of three it wants at once.
    """

    name: str
    title: str
    source: str
    needs: tuple[str, ...]
    fetch: Callable[[], None]
    run: Callable[[Side], list[Result]]
    settings: Mapping[str, str] = field(default_factory=dict)
    brokers: int = 3
    clusters: int = 1
    port: int | None = None

    def missing(self) -> str | None:
        """Why it cannot run on this machine, or None if it can."""
        if self.port is not None and _is_taken(self.port):
            return f"port {self.port}, which the suite has built in, is taken"
        for need in self.needs:
            if not (have_java() if need == "java" else shutil.which(need)):
                return f"{need} is not on this machine"
        return None


def _is_taken(port: int) -> bool:
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind(("127.0.0.1", port))
        except OSError:
            return True
    return False


def timed(name: str, check: Callable[[], str | None]) -> Result:
    """Run one test, which returns the reason of its failure or None."""
    began_s = time.perf_counter()
    try:
        reason = check()
    except (AssertionError, OSError, TimeoutError, ValueError) as error:
        reason = f"{type(error).__name__}: {error}"
    outcome = Outcome.PASS if reason is None else Outcome.FAIL
    return Result(name, outcome, time.perf_counter() - began_s, reason or "")
