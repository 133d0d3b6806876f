"""Limits on connections and connection rates: of a broker, its listeners, addresses and users."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ottla.base.fairness import counted_address
from ottla.quota.client_quotas import ClientQuotas, Windows
from ottla.quota.failing_addresses import FailingAddresses
from ottla.quota.rates import WindowedRate

UNLIMITED = 2**31 - 1


class ConnectionVerdict(NamedTuple):
    """The decision on a new connection, carried out after `wait_ms`.

    It is served or, with a `refusal` (the reason, for the log), closed.
    """

    refusal: str | None = None
    wait_ms: int = 0


WELCOME = ConnectionVerdict()


@dataclass(frozen=True, slots=True)
class Room:
    """The most connections at a time, and the most new ones per second."""

    connections_max: int = UNLIMITED
    creation_rate: int = UNLIMITED


@dataclass(frozen=True, slots=True)
class ConnectionRules:
    """The limits that the settings `max.connection*` set."""

    # The limits of the whole broker.
    broker: Room = Room()
    # The limits of single listeners.
    listeners: Mapping[str, Room] = field(default_factory=dict)
    # Listeners that the broker's limits do not apply to: the inter-broker listener, so that clients
    # cannot use up the connections that brokers need.
    protected: frozenset[str] = frozenset()
    per_address_max: int = UNLIMITED
    # max.connections.per.ip.overrides, by address.
    overrides: Mapping[str, int] = field(default_factory=dict)
    per_user_max: int = UNLIMITED
    # max.connections.per.user.overrides, by user.
    user_overrides: Mapping[str, int] = field(default_factory=dict)
    # max.failed.authentication.rate: of one address, before its new connections wait.
    failed_logins_rate: int = UNLIMITED
    # The most connections for which the process has descriptors, after those for files and brokers.
    descriptors_max: int = UNLIMITED


class ConnectionQuotas:
    """The connections of one broker. Call `close` once for each `open`, also after a refusal."""

    def __init__(self, rules: ConnectionRules, addresses: ClientQuotas, windows: Windows) -> None:
        """`addresses` has the quotas `connection_creation_rate` of single addresses."""
        self._addresses = addresses
        self._windows = windows
        self._count = 0
        self._per_listener: Counter[str] = Counter()
        self._per_address: Counter[str] = Counter()
        self._per_user: Counter[str] = Counter()
        self.failing = FailingAddresses(rules.failed_logins_rate)
        # By listener; None for the broker as a whole.
        self._rates: dict[str | None, WindowedRate] = {}
        self.rules = rules

    def __len__(self) -> int:
        """How many connections are open."""
        return self._count

    def take(self, rules: ConnectionRules) -> None:
        """Apply new limits from now on."""
        self.rules = rules
        self.failing.rate = rules.failed_logins_rate

    def open(self, listener: str, address: str, now_ms: int) -> ConnectionVerdict:
        """Count a new connection, and decide on it."""
        self._count += 1
        self._per_listener[listener] += 1
        self._per_address.update(_counted(address))
        refusal = self._too_many(listener, address)
        if refusal is not None:
            return ConnectionVerdict(refusal)
        wait_ms = self._addresses.connect(address, now_ms)
        if wait_ms:
            refusal = "its address opens them faster than its connection_creation_rate allows"
            return ConnectionVerdict(refusal, min(wait_ms, self._windows.ms))
        turn_ms = 0
        if listener not in self.rules.protected:
            turn = self.failing.wait_ms(address, now_ms)
            if turn is None:
                refusal = "clients of its address fail to log in too often"
                return ConnectionVerdict(refusal, self.failing.close_after_ms(now_ms))
            turn_ms = turn
        wait_ms = max(turn_ms, self._record(listener, self._room(listener).creation_rate, now_ms))
        if listener not in self.rules.protected:
            broker_ms = self._record(None, self.rules.broker.creation_rate, now_ms)
            wait_ms = max(wait_ms, broker_ms)
        return ConnectionVerdict(None, wait_ms) if wait_ms else WELCOME

    def close(self, listener: str, address: str) -> None:
        """Subtract a connection from the counts."""
        self._count -= 1
        self._per_listener[listener] -= 1
        for counted in _counted(address):
            self._per_address[counted] -= 1
            if self._per_address[counted] <= 0:
                del self._per_address[counted]

    def enter(self, listener: str, user: str) -> str | None:
        """Count a connection whose user is now known. Return the reason if it must be closed.

        Call `leave` once for each call, also after a refusal.
        """
        self._per_user[user] += 1
        most = self.rules.user_overrides.get(user, self.rules.per_user_max)
        if self._per_user[user] > most and listener not in self.rules.protected:
            return f"its user {user} already has max.connections.per.user ({most}) of them"
        return None

    def leave(self, user: str) -> None:
        """Subtract a connection from those of its user."""
        self._per_user[user] -= 1
        if self._per_user[user] <= 0:
            del self._per_user[user]

    def _too_many(self, listener: str, address: str) -> str | None:
        rules = self.rules
        most = self._room(listener).connections_max
        if self._per_listener[listener] > most:
            return f"its listener already has max.connections ({most}) of them"
        if listener not in rules.protected and self._count > rules.broker.connections_max:
            return f"there are already max.connections ({rules.broker.connections_max}) of them"
        if listener not in rules.protected and self._count > rules.descriptors_max:
            return (
                f"{rules.descriptors_max} connections are open, and the system's limit of open "
                "files leaves no room for more beside the logs: raise it (`ulimit -n`), or lower "
                "max.connections"
            )
        is_own = address in rules.overrides
        counted = address if is_own else counted_address(address)
        most = rules.overrides[address] if is_own else rules.per_address_max
        if self._per_address[counted] > most:
            return f"its address already has max.connections.per.ip ({most}) of them"
        return None

    def _room(self, listener: str) -> Room:
        return self.rules.listeners.get(listener, Room())

    def _record(self, listener: str | None, limit: int, now_ms: int) -> int:
        if limit >= UNLIMITED:
            return 0
        rate = self._rates.get(listener)
        if rate is None or rate.limit != limit:
            windows = self._windows
            rate = self._rates[listener] = WindowedRate(
                limit, window_num=windows.num, window_ms=windows.ms, grace_ms=windows.ms
            )
        return rate.record(1, now_ms)


def _counted(address: str) -> set[str]:
    """Return the keys under which an address is counted: itself, and its /64 for IPv6."""
    return {address, counted_address(address)}


def parse_overrides(text: str) -> dict[str, int]:
    """Parse `max.connections.per.ip.overrides`, address:count,address:count. Raises ValueError."""
    found = _counts(text, ",", "address")
    return {address.strip("[]"): count for address, count in found.items()}


def parse_user_overrides(text: str) -> dict[str, int]:
    """Parse `max.connections.per.user.overrides`, user:count;user:count. Raises ValueError."""
    return _counts(text, ";", "user")


def _counts(text: str, separator: str, what: str) -> dict[str, int]:
    counts: dict[str, int] = {}
    for item in text.split(separator):
        if item.strip():
            name, _, count = item.strip().rpartition(":")
            if not name or not count.isdecimal():
                raise ValueError(f"{item.strip()[:100]} is not of the form {what}:count")
            counts[name] = int(count)
    return counts
