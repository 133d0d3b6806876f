"""Hosts that are network namespaces, joined by a router in a namespace of its own.

Each host has one wire to the router, which forwards between them. A route that is cut is a
routing rule there: packets one way vanish without an answer, as behind a broken switch, while
those the other way may still pass.
"""

import contextlib
import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from chaos.commands import CommandFailed, run

_SUBNETS = 200
TOOLS = ("ip", "nsenter", "sysctl")


class Hosts:
    """A network of named hosts. `close` takes it away, whatever state it is in."""

    def __init__(self, names: Sequence[str]) -> None:
        self._prefix = f"ottla{os.getpid() % 100_000}"
        self._claim, self._subnet = claim_subnet()
        self._numbers = {name: number for number, name in enumerate(names, start=1)}
        self._cuts: list[tuple[str, str]] = []
        self._router = f"{self._prefix}-r"
        try:
            self._build()
        except CommandFailed:
            self.close()
            raise

    @property
    def here(self) -> str:
        """The address under which hosts reach the machine that they are on."""
        return f"10.{self._subnet}.0.2"

    def address(self, name: str) -> str:
        """The address under which the others reach a host."""
        return f"10.{self._subnet}.{self._numbers[name]}.2"

    def inside(self, name: str) -> list[str]:
        """What to put before a command so that it runs on a host; the process id stays its own.

        `ip netns exec` would give it a view of the mounts of its own, too, in which a disk that
        was unmounted lives on.
        """
        return ["nsenter", f"--net=/var/run/netns/{self._namespace(name)}"]

    def cut(self, source: str, target: str) -> None:
        """Lose what `source` sends to `target` from now on. The other direction stays."""
        run("ip", "-n", self._router, "rule", "add", *self._route(source, target), "blackhole")
        self._cuts.append((source, target))

    def split(self, one: Sequence[str], other: Sequence[str]) -> None:
        """Cut every route between two sets of hosts, both ways."""
        for a in one:
            for b in other:
                self.cut(a, b)
                self.cut(b, a)

    def open(self, host: str) -> None:
        """Let everything pass again that this host sends or is sent."""
        for cut in [cut for cut in self._cuts if host in cut]:
            self._mend(cut)

    def heal(self) -> None:
        """Let everything pass again."""
        for cut in list(self._cuts):
            self._mend(cut)

    def _mend(self, cut: tuple[str, str]) -> None:
        self._cuts.remove(cut)
        run("ip", "-n", self._router, "rule", "del", *self._route(*cut), "blackhole")

    def close(self) -> None:
        """Remove the hosts; processes in them must have ended."""
        for name in [self._router, *(self._namespace(host) for host in self._numbers)]:
            with contextlib.suppress(CommandFailed):
                run("ip", "netns", "del", name)
        self._claim.close()

    def _build(self) -> None:
        run("ip", "netns", "add", self._router)
        run("ip", "netns", "exec", self._router, "sysctl", "-qw", "net.ipv4.ip_forward=1")
        for name, number in self._numbers.items():
            host = self._namespace(name)
            run("ip", "netns", "add", host)
            wire = (f"eth{number}", f"wire{number}")
            run("ip", "-n", host, "link", "add", wire[0], "type", "veth", "peer", "name", wire[1])
            run("ip", "-n", host, "link", "set", wire[1], "netns", self._router)
            gateway = f"10.{self._subnet}.{number}.1"
            for space, device, address in (
                (host, wire[0], self.address(name)),
                (self._router, wire[1], gateway),
            ):
                run("ip", "-n", space, "addr", "add", f"{address}/24", "dev", device)
                run("ip", "-n", space, "link", "set", device, "up")
                run("ip", "-n", space, "link", "set", "lo", "up")
            run("ip", "-n", host, "route", "add", "default", "via", gateway)
        self._join_this_host()

    def _join_this_host(self) -> None:
        """A wire for whoever looks on: faults do not touch it."""
        ours, theirs = f"{self._prefix}l", "onlooker"
        run("ip", "link", "add", ours, "type", "veth", "peer", "name", theirs)
        run("ip", "link", "set", theirs, "netns", self._router)
        run("ip", "addr", "add", f"{self.here}/24", "dev", ours)
        run("ip", "link", "set", ours, "up")
        gateway = f"10.{self._subnet}.0.1"
        run("ip", "-n", self._router, "addr", "add", f"{gateway}/24", "dev", theirs)
        run("ip", "-n", self._router, "link", "set", theirs, "up")
        run("ip", "route", "add", f"10.{self._subnet}.0.0/16", "via", gateway)

    def _namespace(self, name: str) -> str:
        return f"{self._prefix}-{name}"

    def _route(self, source: str, target: str) -> list[str]:
        return ["from", self.address(source), "to", self.address(target)]


def claim_subnet() -> tuple[IO[str], int]:
    """A number N of networks 10.N.*.* that no other run of this machine has; it ends with the file.

    Raises CommandFailed where none is left.
    """
    folder = Path(tempfile.gettempdir())
    for number in range(_SUBNETS):
        subnet = (os.getpid() + number) % _SUBNETS
        claim = (folder / f"ottla-chaos-{subnet}.lock").open("w")
        try:
            fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            claim.close()
            continue
        if f" 10.{subnet}." not in run("ip", "-4", "-o", "addr"):
            return claim, subnet
        claim.close()
    raise CommandFailed(f"all networks 10.0.* to 10.{_SUBNETS - 1}.* are in use")


@contextlib.contextmanager
def network(names: Sequence[str]) -> Iterator[Hosts]:
    """A network of hosts for as long as the block lasts."""
    hosts = Hosts(names)
    try:
        yield hosts
    finally:
        hosts.close()
