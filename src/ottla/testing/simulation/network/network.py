"""The network of a simulated world: hosts, their listeners, and the links between them."""

import asyncio
import errno
import os
from collections.abc import Callable
from random import Random
from typing import Any

from ottla.testing.simulation.network.link import KERNEL, Link
from ottla.testing.simulation.network.transport import TransportEndpoint
from ottla.testing.simulation.virtual.loop import VirtualLoop
from ottla.testing.simulation.virtual.process import Process, current_process

Factory = Callable[[], asyncio.BaseProtocol]

_FIRST_FREE_PORT = 32_768
_HANDSHAKE_BYTES = 60


class SimulatedAddress:
    """A bound address, used in place of a bound socket."""

    def __init__(self, host: str, port: int) -> None:
        self.host = host
        self.port = port

    def getsockname(self) -> tuple[str, int]:
        return self.host, self.port


class Server:
    """A listener on an address, used in place of `asyncio.Server`."""

    def __init__(self, network: "Network", address: SimulatedAddress, factory: Factory) -> None:
        self._network = network
        self.address = address
        self.factory = factory
        self.process = current_process()

    def close(self) -> None:
        self._network.unlisten(self)

    async def wait_closed(self) -> None:
        return


class Network:
    """All hosts and links. A host is known by its name; a link is created on first use."""

    def __init__(self, loop: VirtualLoop, seed: int | str) -> None:
        self.loop = loop
        loop.network = self
        self._seed = seed
        self._chance = Random(f"{seed}/network")
        self._links: dict[tuple[str, str], Link] = {}
        self._servers: dict[tuple[str, int], Server] = {}
        # The open ends of connections, in the order of their creation.
        self.endpoints: dict[TransportEndpoint, None] = {}
        self._down: set[str] = set()
        self._last_port = _FIRST_FREE_PORT
        # The chance that a receive returns only a part of the available bytes.
        self.fragmentation = 0.0
        # Whether the peer still reads what was sent before an abort, as if the program had closed
        # its socket. If False, the reset discards it.
        self.obeys_late = False

    # -- hosts and links

    def link(self, source: str, target: str) -> Link:
        """Return the link from one host to another."""
        link = self._links.get((source, target))
        if link is None:
            chance = Random(f"{self._seed}/link/{source}>{target}")
            link = self._links[source, target] = Link(self.loop, source, target, chance)
        return link

    def links_from(self, source: str) -> list[Link]:
        """Return the links from a host that were used so far."""
        return [link for (begin, _), link in self._links.items() if begin == source]

    def is_up(self, host: str) -> bool:
        """Whether the host has power; its system then answers for dead or paused processes, too."""
        return host not in self._down

    def switch_on(self, host: str) -> None:
        self._down.discard(host)

    def switch_off(self, host: str) -> None:
        """Cut a host's power: its connections end, and their peers are not notified."""
        self._down.add(host)
        for endpoint in self.endpoints_of(host):
            endpoint.vanish()
        for key in [key for key in self._servers if key[0] == host]:
            del self._servers[key]

    def end_process(self, process: Process) -> None:
        """Close all connections and listeners of a dead process, as its system would."""
        for endpoint in list(self.endpoints):
            if endpoint.process is process:
                endpoint.die()
        for key, server in list(self._servers.items()):
            if server.process is process:
                del self._servers[key]

    def endpoints_of(self, host: str) -> list[TransportEndpoint]:
        """Return the ends of connections on a host, oldest first."""
        return [endpoint for endpoint in self.endpoints if endpoint.process.host == host]

    def forget(self, endpoint: TransportEndpoint) -> None:
        self.endpoints.pop(endpoint, None)

    def fragment(self, size: int) -> int:
        """Return how many of `size` available bytes the next receive returns."""
        if size > 1 and self.fragmentation and self._chance.random() < self.fragmentation:
            return self._chance.randrange(1, size)
        return size

    # -- listening

    def bind(self, host: str, port: int) -> SimulatedAddress:
        """Bind an address. Raises OSError if it is in use."""
        host = host or current_process().host
        if port == 0:
            port = self._free_port()
        if (host, port) in self._servers:
            raise OSError(errno.EADDRINUSE, os.strerror(errno.EADDRINUSE))
        return SimulatedAddress(host, port)

    def listen(
        self, factory: Factory, *, sock: SimulatedAddress, backlog: int = 100, **_named: Any
    ) -> Server:
        """Accept connections on a bound address."""
        assert backlog > 0
        server = Server(self, sock, factory)
        self._servers[sock.host, sock.port] = server
        return server

    def unlisten(self, server: Server) -> None:
        self._servers.pop((server.address.host, server.address.port), None)

    # -- connecting

    async def connect(
        self, factory: Factory, host: str, port: int
    ) -> tuple[asyncio.Transport, asyncio.BaseProtocol]:
        """Open a connection from the current process. Raises ConnectionRefusedError.

        If no packets pass, it waits until the caller gives up.
        """
        process = current_process()
        accepted: asyncio.Future[TransportEndpoint] = self.loop.create_future()
        address = (process.host, self._free_port())
        there = self.link(process.host, host)
        there.carry(
            _HANDSHAKE_BYTES, lambda: self._on_knock(process, address, (host, port), accepted)
        )
        endpoint = await accepted
        return endpoint, endpoint.open(factory)

    def _on_knock(
        self,
        process: Process,
        address: tuple[str, int],
        target: tuple[str, int],
        accepted: "asyncio.Future[TransportEndpoint]",
    ) -> None:
        host = target[0]
        if not self.is_up(host):
            return
        back = self.link(host, process.host)
        server = self._servers.get(target)
        if server is None:
            back.carry(_HANDSHAKE_BYTES, lambda: _refuse(accepted))
            return
        near = TransportEndpoint(self, process, self.link(process.host, host), address, target)
        far = TransportEndpoint(self, server.process, back, target, address)
        near.peer, far.peer = far, near
        self.endpoints[far] = None
        self.loop.call_soon(far.open, server.factory, context=server.process.context)
        back.carry(_HANDSHAKE_BYTES, lambda: self._on_accepted(near, accepted))

    def _on_accepted(
        self, near: TransportEndpoint, accepted: "asyncio.Future[TransportEndpoint]"
    ) -> None:
        if accepted.done() or not near.process.is_alive:
            near.abort()
            return
        self.endpoints[near] = None
        self.loop.call_soon(_accept, accepted, near, context=near.process.context)

    def _free_port(self) -> int:
        self._last_port += 1
        return self._last_port

    def drop(self, endpoint: TransportEndpoint, *, both: bool) -> None:
        """Reset a connection at this end; with `both`, also at the other end."""
        self.loop.call_soon(endpoint.reset, context=KERNEL)
        if both:
            self.loop.call_soon(endpoint.peer.reset, context=KERNEL)


def _refuse(accepted: "asyncio.Future[TransportEndpoint]") -> None:
    if not accepted.done():
        accepted.set_exception(ConnectionRefusedError(errno.ECONNREFUSED, "connection refused"))


def _accept(accepted: "asyncio.Future[TransportEndpoint]", endpoint: TransportEndpoint) -> None:
    if accepted.done():
        endpoint.abort()
    else:
        accepted.set_result(endpoint)
