"""ACLs indexed by the resources they protect, so that a request examines only few.

A literal name, the wildcard and each length of prefix are one dictionary look-up each, and the ACLs
found there are grouped by principal: 10,000 ACLs cost as much as the few that apply.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import lru_cache
from ipaddress import IPv4Network, IPv6Network, ip_network

from ottla.base.fairness import MAPPED
from ottla.metadata.quota_entity import plain_address
from ottla.security.acl import Acl, ResourcePattern
from ottla.security.names import EVERY_USER, WILDCARD, AclResource, PatternType

# The IPv4 addresses among the IPv6 addresses.
_MAPPED = IPv6Network(f"{MAPPED}0:0/96")
# The ACLs of one pattern by principal.
_Section = dict[str, list[Acl]]


class AclRules:
    """All ACLs of a cluster."""

    def __init__(self, acls: Iterable[Acl] = ()) -> None:
        # Invariant: no section is empty.
        self._sections: dict[ResourcePattern, _Section] = {}
        # The number of prefixes by length, for each type of resource.
        self._prefixes: dict[AclResource, Counter[int]] = {}
        # Their lengths, ascending.
        self._lengths: dict[AclResource, list[int]] = {}
        by_pattern: dict[ResourcePattern, list[Acl]] = {}
        for acl in acls:
            by_pattern.setdefault(acl.pattern, []).append(acl)
        for pattern, found in by_pattern.items():
            self.set_pattern(pattern, found)

    def __iter__(self) -> Iterator[Acl]:
        """Iterate over all ACLs, grouped by pattern."""
        for section in self._sections.values():
            for acls in section.values():
                yield from acls

    def set_pattern(self, pattern: ResourcePattern, acls: Iterable[Acl]) -> None:
        """Replace the ACLs of one pattern."""
        section: _Section = {}
        for acl in dict.fromkeys(acls):
            section.setdefault(acl.principal, []).append(acl)
        was_there = self._sections.pop(pattern, None) is not None
        if section:
            self._sections[pattern] = section
        if pattern.pattern_type is PatternType.PREFIXED and was_there != bool(section):
            counts = self._prefixes.setdefault(pattern.resource_type, Counter())
            counts[len(pattern.name)] += 1 if section else -1
            self._lengths[pattern.resource_type] = sorted(+counts)

    def sections(self, kind: AclResource, name: str) -> Iterator[_Section]:
        """Return the ACLs that protect the resource, by principal: literal, by prefix, wildcard."""
        find = self._sections.get
        found = find(ResourcePattern(kind, name))
        if found is not None:
            yield found
        for length in self._lengths.get(kind, ()):
            if length > len(name):
                break
            found = find(ResourcePattern(kind, name[:length], PatternType.PREFIXED))
            if found is not None:
                yield found
        if name != WILDCARD:
            found = find(ResourcePattern(kind, WILDCARD))
            if found is not None:
                yield found

    def of_type(self, kind: AclResource, principal: str) -> Iterator[Acl]:
        """Return the ACLs of all resources of a type that name `principal`, or every user."""
        for pattern, section in self._sections.items():
            if pattern.resource_type is kind:
                yield from naming(section, principal)


def naming(section: _Section, principal: str) -> list[Acl]:
    """Return the ACLs of a section that name `principal`, or every user."""
    own = section.get(principal)
    everyone = section.get(EVERY_USER) if principal != EVERY_USER else None
    if own is None:
        return everyone or []
    return own if everyone is None else [*own, *everyone]


def comes_from(acl: Acl, host: str) -> bool:
    """Whether an ACL applies to requests from the address `host`."""
    if acl.host in (WILDCARD, host):
        return True
    if "/" in acl.host:
        network, own = network_of(acl.host), network_of(host.partition("%")[0])
        return network is not None and own is not None and own.network_address in network
    if ":" not in acl.host and not host.startswith(MAPPED):
        return False
    # Java spells an IPv6 address out: 0:0:0:0:0:0:0:1 for ::1.
    address = plain_address(acl.host)
    return address is not None and address == plain_address(host)


@lru_cache
def network_of(text: str) -> IPv4Network | IPv6Network | None:
    """Parse a network such as `10.0.0.0/8`; return None for other text.

    Also accepts an IPv4 network written as `::ffff:10.0.0.0/104`.
    """
    try:
        network = ip_network(text, strict=False)
    except ValueError:
        return None
    if isinstance(network, IPv6Network) and network.subnet_of(_MAPPED):
        address = network.network_address.ipv4_mapped
        assert address is not None
        return IPv4Network((address, network.prefixlen - _MAPPED.prefixlen))
    return network
