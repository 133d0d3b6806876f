"""Which processes of this machine serve addresses, by Linux's /proc; elsewhere none is found."""

import contextlib
import os
import socket
from collections.abc import Iterable, Iterator

from ottla.client.connection.addresses import Address

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENING = "0A"


def serving(addresses: Iterable[Address]) -> dict[Address, int]:
    """The process that listens on each address: of this machine, and of a user we may look at."""
    local = {one.port: one for one in addresses if _is_local(one.host)}
    sockets = {inode: local[port] for port, inode in _listeners() if port in local}
    found: dict[Address, int] = {}
    for pid, inode in _open_sockets() if sockets else ():
        if inode in sockets:
            found[sockets[inode]] = pid
    return found


def _is_local(host: str) -> bool:
    """Whether a socket of this machine can have the address of `host`."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True


def _listeners() -> Iterator[tuple[int, str]]:
    """Port and inode of each socket that listens."""
    for table in _TABLES:
        with contextlib.suppress(OSError), open(table, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    yield int(fields[1].rpartition(":")[2], 16), fields[9]


def _open_sockets() -> Iterator[tuple[int, str]]:
    """Process and inode of each open socket."""
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                for descriptor in os.listdir(f"/proc/{name}/fd"):
                    with contextlib.suppress(OSError):
                        target = os.readlink(f"/proc/{name}/fd/{descriptor}")
                        if target.startswith("socket:["):
                            yield int(name), target[8:-1]
