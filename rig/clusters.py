"""Brokers that form a cluster on this machine, each a process with an account of its own.

`rig.kafka_cluster` and `rig.ottla_cluster` make them. A member can be killed, paused, stopped in
order and started again, on the folder and the port it had.
"""

import contextlib
import os
import signal
import socket
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from rig import accounts, metadata
from rig.probe import connect, free_port
from rig.process import DiedEarly, Process, start

_POLL_S = 0.01
_PATIENCE_S = 180.0


@dataclass(slots=True)
class Member:
    """One broker. `pid` is 0 while none runs; `command` starts it anew."""

    number: int
    port: int
    folder: Path
    logs: Path
    command: Sequence[str | Path]
    pid: int = 0
    _own: Process | None = None

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "broker.log"

    def start(self) -> None:
        """Start it, with the data it had; returns at once."""
        assert not self.alive()
        self._own = start(self.command, self.log)
        self.pid = self._own.pid

    def alive(self) -> bool:
        """Whether it runs, or is paused."""
        if self._own is not None:
            return self._own.alive()
        return self.pid != 0 and accounts.runs(self.pid)

    def send(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def kill(self) -> None:
        """End it as a crash does: nothing of it runs any more."""
        self.send(signal.SIGKILL)
        self._wait_for_end(60.0)

    def pause(self) -> None:
        """Keep it from running, as a machine that hangs."""
        self.send(signal.SIGSTOP)

    def resume(self) -> None:
        self.send(signal.SIGCONT)

    def stop(self, timeout_s: float = 60.0) -> None:
        """Ask it to end in order, and wait; insist when it does not."""
        if not self.alive():
            return
        self.resume()
        self.send(signal.SIGTERM)
        try:
            self._wait_for_end(timeout_s)
        except TimeoutError:
            self.kill()

    def cpu_seconds(self) -> float:
        """What this process has used since it was started."""
        return accounts.cpu_seconds(self.pid)

    def rss_bytes(self) -> int:
        """Memory resident now; pages that brokers share count for each."""
        return accounts.rss_bytes(self.pid)

    def proportional_bytes(self) -> int:
        """Memory resident now; a page that three share counts for a third."""
        return accounts.proportional_bytes(self.pid)

    def topic_bytes(self, topic: str) -> int:
        """How much of a topic lies in this broker's folder; indexes not counted."""
        return sum(file.stat().st_size for file in self.logs.glob(f"{topic}-*/*.log"))

    def _wait_for_end(self, timeout_s: float) -> None:
        deadline_s = time.perf_counter() + timeout_s
        while self.alive():
            if time.perf_counter() > deadline_s:
                raise TimeoutError(f"broker {self.number} runs on after {timeout_s:.0f} s")
            time.sleep(_POLL_S)


@dataclass(slots=True)
class Cluster:
    """The members by number, which is their broker id."""

    name: str
    members: dict[int, Member] = field(default_factory=dict)

    @property
    def bootstrap(self) -> str:
        return ",".join(member.address for member in self.members.values())

    @property
    def running(self) -> list[Member]:
        return [member for member in self.members.values() if member.alive()]

    def cpu_seconds(self) -> float:
        """Of all members that run, together."""
        return sum(member.cpu_seconds() for member in self.running)

    def seen_by(self, number: int, topics: list[str] | None = None) -> metadata.Seen:
        """What one broker tells. Raises OSError while it does not serve."""
        with connect(self.members[number].port, 30.0) as connection:
            return metadata.ask(connection, topics)

    def agree(self, condition: Callable[[metadata.Seen], bool], topics: list[str] | None) -> bool:
        """Whether all members that run tell something for which `condition` holds."""
        try:
            seen = [self.seen_by(member.number, topics) for member in self.running]
        except OSError:
            return False
        return bool(seen) and all(condition(one) for one in seen)

    def wait_until_formed(self) -> None:
        """Wait until every member that runs knows all of those."""
        expected = len(self.running)
        self.wait_until(
            lambda: self.agree(lambda seen: len(seen.ports) == expected, []),
            f"{expected} brokers that know each other",
        )

    def wait_until_in_sync(self, topic: str) -> None:
        """Wait until every partition of `topic` has a leader and all its replicas in sync."""
        self.wait_until(
            lambda: self.agree(lambda seen: _in_sync(seen, topic), [topic]),
            f"all replicas of {topic} in sync",
        )

    def wait_until_all_in_sync(self) -> None:
        """Wait until so it is with every topic there is, and all members list the same ones."""

        def names_in_sync() -> bool:
            names: set[tuple[str, ...]] = set()

            def settled(seen: metadata.Seen) -> bool:
                names.add(tuple(sorted(seen.topics)))
                return all(_in_sync(seen, topic) for topic in seen.topics)

            return self.agree(settled, None) and len(names) == 1

        self.wait_until(names_in_sync, "all replicas of all topics in sync")

    def wait_until(
        self, condition: Callable[[], bool], what: str, timeout_s: float = _PATIENCE_S
    ) -> None:
        """Raises DiedEarly, with what the brokers printed, when `condition` stays untrue."""
        deadline_s = time.perf_counter() + timeout_s
        while True:
            asked_s = time.perf_counter()
            if condition():
                return
            if time.perf_counter() > deadline_s:
                logs = "\n".join(_tail(member.log) for member in self.members.values())
                raise DiedEarly(f"{self.name}: after {timeout_s:.0f} s not so: {what}\n{logs}")
            # Asking takes time from the brokers: not more than half of it.
            time.sleep(max(_POLL_S, time.perf_counter() - asked_s))

    def shut_down(self) -> None:
        """Ask all to end in order, at once, and wait."""
        for member in self.running:
            member.send(signal.SIGTERM)
        for member in self.members.values():
            member.stop()

    def stop(self) -> None:
        """End all that run: nothing of this cluster is needed any more."""
        for member in self.running:
            with contextlib.suppress(ProcessLookupError):
                member.resume()
                member.kill()


def _in_sync(seen: metadata.Seen, topic: str) -> bool:
    partitions = seen.topics.get(topic, {})
    return bool(partitions) and all(
        p.error == 0 and p.leader in seen.ports and set(p.isr) == set(p.replicas)
        for p in partitions.values()
    )


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-4000:] if log.exists() else ""


def free_ports(count: int) -> int:
    """The first of so many ports in a row that nobody listens on now."""
    while True:
        first = free_port()
        for _ in range(1, count):
            free_port()  # Those that follow: nobody here is given them later.
        with contextlib.ExitStack() as stack:
            try:
                for port in range(first, first + count):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
