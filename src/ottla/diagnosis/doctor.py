"""Examines a cluster from the client's side, with Ottla's brokers or Apache Kafka's.

First each bootstrap address is tried, then each address that brokers advertise, over which all
brokers are asked the same: whom they know, what they serve, their settings and clocks. The rest is
asked of the cluster as a whole. Nothing is changed, and nothing is written.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from ottla.base.errors import OttlaError
from ottla.base.quantities import counted, iso
from ottla.client.admin import Admin
from ottla.client.admin.configs import ConfigResourceType
from ottla.client.common.errors import ClientError
from ottla.client.connection.connection import Connection
from ottla.client.connection.security import ClientConfig, ClientSecurity, security_by
from ottla.client.connection.view import Address, parse_bootstrap
from ottla.diagnosis.addresses import (
    CLIENT_ID,
    PATIENCE_S,
    AddressTrouble,
    is_loopback,
    try_address,
)
from ottla.diagnosis.cluster import health
from ottla.diagnosis.findings import (
    OF_BROKERS,
    OF_TOPICS,
    Area,
    ClockOffset,
    Finding,
    Served,
    Severity,
    Values,
    of_brokers,
    of_clocks,
    of_health,
    of_topics,
    of_versions,
    ordered,
)
from ottla.wire.api import ApiKey
from ottla.wire.messages.configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.wire.messages.log_cleaning import DescribeCleanerRequest, DescribeCleanerResponse
from ottla.wire.messages.metadata import MetadataRequest, MetadataResponse
from ottla.wire.notation import Message

Response = TypeVar("Response")

# The APIs without which this client is of little use.
_NEEDED = (
    ApiKey.PRODUCE,
    ApiKey.FETCH,
    ApiKey.LIST_OFFSETS,
    ApiKey.METADATA,
    ApiKey.FIND_COORDINATOR,
    ApiKey.DESCRIBE_CONFIGS,
)
# Only Ottla's brokers serve it.
_CLEANER = DescribeCleanerRequest.__api_key__
_CLOCK_ROUNDS = 3
_EXPIRES_SOON_MS = 30 * 86_400_000


@dataclass(frozen=True, slots=True)
class Examination:
    """The findings, worst first; and for each area examined, a sentence about what was seen."""

    cluster_id: str | None
    findings: tuple[Finding, ...]
    checked: Mapping[Area, str]

    @property
    def is_well(self) -> bool:
        """Return whether there are neither errors nor warnings."""
        return all(one.severity is Severity.NOTE for one in self.findings)


async def examine(bootstrap: str, config: ClientConfig = None) -> Examination:
    """Examine the cluster at `bootstrap`, as a client with the settings `config`.

    Raises ClientError if an address or the client's settings are invalid.
    """
    return await _Doctor(parse_bootstrap(bootstrap), security_by(config)).examine(bootstrap, config)


@dataclass(slots=True)
class _BrokerFacts:
    """What a broker said over its advertised address."""

    metadata: MetadataResponse
    settings: dict[str, str | None]
    served: Served
    lacking: tuple[int, ...]
    clock: ClockOffset | None
    round_trip_ms: float


@dataclass(slots=True)
class _Doctor:
    bootstrap: tuple[Address, ...]
    security: ClientSecurity
    found: list[Finding] = field(default_factory=list)
    checked: dict[Area, str] = field(default_factory=dict)
    # The ends of certificates, in ms.
    expiries: dict[Address, int] = field(default_factory=dict)
    facts: dict[int, _BrokerFacts] = field(default_factory=dict)

    async def examine(self, bootstrap: str, config: ClientConfig) -> Examination:
        first = await self._try_bootstrap()
        if first is None:
            self.checked[Area.ADDRESSES] = f"no answer of {bootstrap}: nothing else can be examined"
            return Examination(None, ordered(self.found), self.checked)
        await self._try_advertised(first)
        self._compare_brokers()
        async with Admin(
            bootstrap,
            client_id=CLIENT_ID,
            config=config,
            default_api_timeout_ms=int(PATIENCE_S * 1000),
        ) as admin:
            await self._or_note(Area.PARTITIONS, lambda: self._health(admin))
            await self._or_note(Area.SETTINGS, lambda: self._topics(admin))
        return Examination(first.cluster_id, ordered(self.found), self.checked)

    # -- addresses

    async def _try_bootstrap(self) -> MetadataResponse | None:
        """Try each bootstrap address; return the metadata from the first that answers."""
        answers: dict[Address, MetadataResponse] = {}
        for address in self.bootstrap:
            reached = await self._reach(address, f"bootstrap address {address}", None)
            if reached is None:
                continue
            try:
                answers[address] = await _ask(reached, MetadataRequest(topics=[]), MetadataResponse)
            except ClientError as error:
                self._add_error(Area.ADDRESSES, "no answer", error, str(address))
            finally:
                reached.close()
        ids = sorted({str(answer.cluster_id) for answer in answers.values()})
        if len(ids) > 1:
            self._add(
                Area.ADDRESSES,
                "two clusters",
                f"the bootstrap addresses belong to clusters {', '.join(ids)}",
                "name the addresses of one cluster only",
                *map(str, answers),
            )
        return next(iter(answers.values()), None)

    async def _try_advertised(self, metadata: MetadataResponse) -> None:
        """Try the address that each broker advertises, and ask each broker about itself."""
        addresses = {each.node_id: Address(each.host, each.port) for each in metadata.brokers}
        for broker_id, address in sorted(addresses.items()):
            same = [other for other, one in addresses.items() if one == address]
            if len(same) > 1 and broker_id == min(same):
                self._add(
                    Area.ADDRESSES,
                    "one address for several brokers",
                    f"brokers {', '.join(map(str, sorted(same)))} all advertise {address}: clients"
                    " reach one of them and ask it for what the others lead",
                    "give each broker its own advertised.listeners",
                    str(address),
                )
        await asyncio.gather(*(self._ask_broker(*each) for each in addresses.items()))
        reached = [self.facts[broker_id].round_trip_ms for broker_id in self.facts]
        took = f", in {min(reached):.1f} to {max(reached):.1f} ms" if reached else ""
        self.checked[Area.ADDRESSES] = (
            f"{len(reached)} of {len(addresses)} that brokers advertise answer{took}"
        )
        self.checked[Area.CERTIFICATES] = self._certificates()

    async def _ask_broker(self, broker_id: int, address: Address) -> None:
        connection = await self._reach(address, f"broker {broker_id}", broker_id)
        if connection is None:
            return
        try:
            self.facts[broker_id] = await _facts_of(connection, broker_id)
        except _AnotherBroker:
            self._add(
                Area.ADDRESSES,
                "another broker answers",
                f"broker {broker_id} advertises {address}, where another broker answers",
                f"correct advertised.listeners of broker {broker_id}, or the proxy or forwarded"
                " port at that address",
                f"broker {broker_id}",
            )
        except ClientError as error:
            self._add_error(Area.ADDRESSES, "no answer", error, f"broker {broker_id}")
        finally:
            connection.close()

    async def _reach(
        self, address: Address, whose: str, broker_id: int | None
    ) -> Connection | None:
        tried = await try_address(address, self.security)
        if isinstance(tried, AddressTrouble):
            self._add_unreachable(tried, address, whose, broker_id)
            return None
        if tried.expires_ms is not None:
            self.expiries[address] = tried.expires_ms
        if tried.refused_ips:
            self._add(
                Area.ADDRESSES,
                "a useless first address",
                f"{address.host} also resolves to {', '.join(tried.refused_ips)}, where nothing"
                " listens: clients try that first",
                "let the broker listen there too, or take that address out of DNS",
                whose,
                severity=Severity.NOTE,
            )
        return tried.connection

    def _add_unreachable(
        self, tried: AddressTrouble, address: Address, whose: str, broker_id: int | None
    ) -> None:
        if broker_id is None:
            what, remedy = f"{tried.step} fails", tried.remedy
        else:
            what = f"an advertised address fails: {tried.step}"
            remedy = _remedy_for_advertised(tried, address, broker_id, self.bootstrap)
        cause = tried.cause if broker_id is None else f"{whose} advertises {address}: {tried.cause}"
        known = Finding(Severity.ERROR, Area.ADDRESSES, what, cause, remedy, (whose,))
        if known not in self.found:
            self.found.append(known)

    def _certificates(self) -> str:
        if not self.expiries:
            return f"none: the client uses {self.security.protocol}"
        for address, expires_ms in self.expiries.items():
            if expires_ms - time.time() * 1000 < _EXPIRES_SOON_MS:
                self._add(
                    Area.CERTIFICATES,
                    "a certificate expires",
                    f"that of {address} expires at {iso(expires_ms)}: no client connects then",
                    "renew it (ssl.keystore.location); Ottla's brokers need no restart for it",
                    str(address),
                    severity=Severity.WARNING,
                )
        soonest = iso(min(self.expiries.values()))
        return f"{counted(len(self.expiries), 'certificate')}, the first expires {soonest}"

    # -- brokers beside each other

    def _compare_brokers(self) -> None:
        facts = self.facts
        if not facts:
            return
        known = {
            broker: tuple(sorted(each.node_id for each in one.metadata.brokers))
            for broker, one in sorted(facts.items())
        }
        if len(set(known.values())) > 1:
            shown = "; ".join(f"broker {one} knows {list(of)}" for one, of in known.items())
            self._add(
                Area.CLUSTER,
                "brokers disagree",
                f"they do not know the same brokers: {shown}",
                "a broker is cut off from the controller, or one has just started or stopped: run"
                " this again, then see the log of the broker that knows fewer",
                *(f"broker {broker}" for broker in known),
            )
        self.checked[Area.CLUSTER] = (
            f"{counted(len(facts), 'broker')}: {', '.join(map(str, known))}"
        )
        clocks = {broker: one.clock for broker, one in facts.items() if one.clock is not None}
        self.found += of_clocks(clocks)
        if clocks:
            offsets = [one.offset_ms for one in clocks.values()]
            exact = max(one.error_ms for one in clocks.values())
            self.checked[Area.CLOCKS] = (
                f"{min(offsets):+.0f} to {max(offsets):+.0f} ms from this machine's, known to"
                f" {exact:.0f} ms"
            )
        else:
            self.checked[Area.CLOCKS] = (
                "not compared: Apache Kafka shows its clock only in records that it stamps;"
                " `ottla cluster ready --prove` writes some and compares"
            )
        served = {broker: one.served for broker, one in facts.items()}
        self.found += of_versions(served, {broker: one.lacking for broker, one in facts.items()})
        any_served = next(iter(served.values()))
        whose = "Ottla" if _CLEANER in any_served else "Apache Kafka or another"
        self.checked[Area.VERSIONS] = f"{whose}; {counted(len(any_served), 'API')} served"
        self.found += of_brokers({broker: one.settings for broker, one in facts.items()})

    # -- the cluster as a whole

    async def _health(self, admin: Admin) -> None:
        found = await health(admin)
        self.found += of_health(found.findings)
        self.checked[Area.PARTITIONS] = f"{counted(found.partition_count, 'partition')}; " + (
            ", ".join(f"{count} {name.replace('_', ' ')}" for name, count in found.counts.items())
        )
        disks = await admin.logs.directories(found.live, patience_s=PATIENCE_S)
        free = [one.usable_bytes / one.total_bytes for one in disks if one.total_bytes > 0]
        least = f", at least {min(free):.0%} free" if free else ""
        self.checked[Area.DISKS] = f"log directories: {len(disks)}{least}"

    async def _topics(self, admin: Admin) -> None:
        views = await admin.topics.all(internal=False)
        entries = await admin.configs.describe_topics([view.name for view in views], OF_TOPICS)
        topics: dict[str, tuple[int, Values]] = {
            view.name: (
                len(view.partitions[0].replicas),
                {name: entry.value for name, entry in entries[view.name].items()},
            )
            for view in views
            if view.name in entries and view.partitions
        }
        broker: Values = next((one.settings for one in self.facts.values()), {})
        self.found += of_topics(topics, broker, len(self.facts))
        self.checked[Area.SETTINGS] = (
            f"{len(OF_BROKERS)} settings of each broker, {len(OF_TOPICS)} of each of"
            f" {counted(len(topics), 'topic')}"
        )

    async def _or_note(self, area: Area, examined: Callable[[], Awaitable[None]]) -> None:
        """Examine an area; if the cluster does not answer, or refuses to, say so."""
        try:
            await examined()
        except OttlaError as error:
            self._add_error(area, "could not be examined", error, area)

    def _add(
        self,
        area: Area,
        trouble: str,
        cause: str,
        remedy: str,
        *where: str,
        severity: Severity = Severity.ERROR,
    ) -> None:
        self.found.append(Finding(severity, area, trouble, cause, remedy, where))

    def _add_error(self, area: Area, trouble: str, error: OttlaError, where: str) -> None:
        cause, _, remedy = error.message.partition("; ")
        self._add(area, trouble, cause, remedy or "see the broker's log", where)


def _remedy_for_advertised(
    tried: AddressTrouble, address: Address, broker_id: int, bootstrap: tuple[Address, ...]
) -> str:
    """Return what helps if clients cannot use the address that a broker advertises."""
    if tried.step in ("TLS", "login", "protocol"):
        return tried.remedy
    if is_loopback(address.host) and not all(is_loopback(one.host) for one in bootstrap):
        return (
            f"{address.host} means each client's own machine: set advertised.listeners of broker"
            f" {broker_id} to a name that clients resolve, such as {bootstrap[0].host}"
        )
    return (
        f"clients use only this address, whatever they connect to first: set advertised.listeners"
        f" of broker {broker_id} to one that this machine reaches; clients inside and outside of a"
        " container network need two listeners"
    )


class _AnotherBroker(Exception):
    """A broker refused to describe itself under the id that was expected at its address."""


async def _facts_of(connection: Connection, broker_id: int) -> _BrokerFacts:
    began_s = time.monotonic()
    metadata = await _ask(connection, MetadataRequest(topics=[]), MetadataResponse)
    round_trip_ms = (time.monotonic() - began_s) * 1000
    resource = DescribeConfigsResource(
        resource_type=ConfigResourceType.BROKER,
        resource_name=str(broker_id),
        configuration_keys=list(OF_BROKERS),
    )
    answer = await _ask(
        connection, DescribeConfigsRequest(resources=[resource]), DescribeConfigsResponse
    )
    (result,) = answer.results
    # Both Ottla and Kafka say so, with the same code as for other mistakes.
    if (result.error_message or "").startswith("Unexpected broker id"):
        raise _AnotherBroker
    return _BrokerFacts(
        metadata,
        {entry.name: entry.value for entry in result.configs},
        connection.versions.served(),
        tuple(key for key in _NEEDED if key not in connection.versions),
        await _clock(connection),
        round_trip_ms,
    )


async def _clock(connection: Connection) -> ClockOffset | None:
    """Return how far the broker's clock is ahead; None if the broker does not show it."""
    agreed = connection.versions.get(_CLEANER)
    if agreed is None or agreed < 1:
        return None
    offsets = []
    for _ in range(_CLOCK_ROUNDS):
        before_ms, began_s = time.time() * 1000, time.monotonic()
        answer = await _ask(connection, DescribeCleanerRequest(), DescribeCleanerResponse)
        half_ms = (time.monotonic() - began_s) * 500
        if answer.now_ms < 0:
            return None  # This client may not describe the cluster.
        offsets.append(ClockOffset(answer.now_ms - before_ms - half_ms, half_ms + 1))
    return min(offsets, key=lambda one: one.error_ms)


async def _ask(connection: Connection, message: Message, response_type: type[Response]) -> Response:
    return await connection.request(message, response_type, PATIENCE_S)
