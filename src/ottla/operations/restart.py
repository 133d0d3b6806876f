"""Restarts brokers that `ottla start --brokers` or `--cores` runs on this machine."""

import asyncio
import contextlib
import os
import signal
import socket
from collections.abc import Iterable, Iterator

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.system import broker_process, process_name
from ottla.client.admin import Admin
from ottla.client.common.errors import ClientError
from ottla.client.connection.view import Address

_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_LISTENING = "0A"


def serving(addresses: Iterable[Address]) -> dict[Address, int]:
    """Return the process that listens on each address of this machine, if it is visible to us."""
    local = {one.port: one for one in addresses if _is_local(one.host)}
    sockets = {inode: local[port] for port, inode in _listeners() if port in local}
    found: dict[Address, int] = {}
    for pid, inode in _open_sockets() if sockets else ():
        if inode in sockets:
            found[sockets[inode]] = pid
    return found


def _is_local(host: str) -> bool:
    """Whether `host` is an address of this machine."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, 0, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.bind(address)
    except OSError:
        return False
    return True


def _listeners() -> Iterator[tuple[int, str]]:
    """Yield port and inode of each listening socket."""
    for table in _TABLES:
        with contextlib.suppress(OSError), open(table, encoding="ascii") as lines:
            for line in list(lines)[1:]:
                fields = line.split()
                if fields[3] == _LISTENING:
                    yield int(fields[1].rpartition(":")[2], 16), fields[9]


def _open_sockets() -> Iterator[tuple[int, str]]:
    """Yield process id and inode of each open socket."""
    with contextlib.suppress(OSError):
        for name in filter(str.isdecimal, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                for descriptor in os.listdir(f"/proc/{name}/fd"):
                    with contextlib.suppress(OSError):
                        target = os.readlink(f"/proc/{name}/fd/{descriptor}")
                        if target.startswith("socket:["):
                            yield int(name), target[8:-1]


_POLL_S = 0.2


async def pids(admin: Admin) -> dict[int, int]:
    """Return the process ids of the live brokers on this machine."""
    brokers = (await admin.cluster.describe()).brokers
    found = serving(one.address for one in brokers)
    return {one.broker_id: found[one.address] for one in brokers if one.address in found}


async def restart(admin: Admin, broker_id: int, timeout_s: float) -> tuple[int, int]:
    """Restart a broker by a controlled shutdown; return its old and new process id.

    Raises OttlaError if no command with several brokers runs it on this machine, and
    REQUEST_TIMED_OUT.
    """
    brokers = [one.broker_id for one in (await admin.cluster.describe()).brokers]
    if broker_id not in brokers:
        raise OttlaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"there is no live broker {broker_id}; those of this cluster are"
            f" {', '.join(map(str, sorted(brokers)))}",
        )
    old = (await pids(admin)).get(broker_id)
    if old is None or process_name(old) != broker_process(broker_id):
        where = "on this machine" if old is None else f"that runs broker {broker_id} (pid {old})"
        raise OttlaError(
            ErrorCode.BROKER_ID_NOT_REGISTERED,
            f"there is no process of `ottla start --brokers` or `--cores` {where}: stop the broker"
            " with SIGTERM, and start it as it was started before",
        )
    os.kill(old, signal.SIGHUP)
    deadline_s = asyncio.get_running_loop().time() + timeout_s
    while (new := await _pid_now(admin, broker_id)) is None or new == old:
        if asyncio.get_running_loop().time() > deadline_s:
            raise OttlaError(
                ErrorCode.REQUEST_TIMED_OUT,
                f"broker {broker_id} is not back after {timeout_s:g} s: see the log of "
                "`ottla start`",
            )
        await asyncio.sleep(_POLL_S)
    return old, new


async def _pid_now(admin: Admin, broker_id: int) -> int | None:
    try:
        return (await pids(admin)).get(broker_id)
    except ClientError:
        # The broker is stopping or not back yet, and the client knows no other broker to ask.
        return None
