"""The ACLs of the cluster: reads and changes them in the store.

Every broker keeps all ACLs in memory, and is notified of changes in the same way as of changed
settings.
"""

import asyncio
import logging
from asyncio import Lock
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

from ottla.base.clock import Clock
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.configs.changes import change_notice
from ottla.coordination.interface.store import (
    BadVersion,
    Create,
    Delete,
    Node,
    NodeExists,
    NoNode,
    Operation,
    Set,
    Store,
    parent_of,
)
from ottla.security.acl import Acl, AclFilter, ResourcePattern
from ottla.security.authorizer import Authorizer
from ottla.security.principal import parse_super_users
from ottla.security.rules import AclRules
from ottla.security.stored import (
    CONFIG_ACLS,
    acl_path,
    decode_acls,
    encode_acls,
    pattern_of,
    unreadable,
)

_log = logging.getLogger(__name__)

OnChanged = Callable[[str], Awaitable[None]]

# The most ACLs that one request may create or delete, as in Kafka.
ACLS_PER_REQUEST_MAX = 10_000
# How many ACLs are compared with a filter in one turn of the loop, which takes about 20 ms.
_SLICE = 20_000


def new_authorizer(settings: BrokerSettings) -> Authorizer | None:
    """Create the authorizer named by `authorizer.class.name`; None if it is not set."""
    if not settings.text("authorizer.class.name"):
        return None
    return Authorizer(
        parse_super_users(settings.text("super.users")),
        allow_everyone_if_no_acl=settings.flag("allow.everyone.if.no.acl.found"),
    )


class Acls:
    """Describes and alters ACLs. `authorizer` decides by the newest ACLs."""

    def __init__(self, store: Store, clock: Clock, authorizer: Authorizer) -> None:
        self.authorizer = authorizer
        self._store = store
        self._clock = clock
        self._changing = Lock()

    async def load(self) -> None:
        """Read all ACLs. If the ACLs of a resource are unreadable, every user is denied it."""
        acls: list[Acl] = []
        async with self._changing:
            for path, node in (await self._store.subtree(CONFIG_ACLS)).items():
                pattern = pattern_of(path)
                if pattern is not None:
                    acls += _readable(path, pattern, node)
            self.authorizer.set_rules(AclRules(acls))

    def before(self, others: OnChanged) -> OnChanged:
        """Return a callback for change notifications: reads ACLs, passes the rest to `others`."""

        async def on_changed(entity: str) -> None:
            path = f"/config/{entity}"
            pattern = pattern_of(path)
            if pattern is None:
                await others(entity)
                return
            async with self._changing:
                node = await self._store.get(path)
                self.authorizer.set_pattern(pattern, _readable(path, pattern, node))

        return on_changed

    def matching(self, wanted: AclFilter) -> list[Acl]:
        """Return the ACLs that match a filter."""
        return [acl for acl in self.authorizer.rules if wanted.matches(acl)]

    async def matching_all(self, filters: Sequence[AclFilter]) -> list[list[Acl]]:
        """Return the ACLs that match each filter. Other requests are served meanwhile.

        Raises OttlaError(POLICY_VIOLATION) if there are more than one request may change.
        """
        rules = list(self.authorizer.rules)
        found: list[list[Acl]] = []
        compared = count = 0
        for wanted in filters:
            found.append([acl for acl in rules if wanted.matches(acl)])
            count += len(found[-1])
            too_many(count)
            compared += len(rules)
            if compared >= _SLICE:
                compared = 0
                await asyncio.sleep(0)
        return found

    async def create(self, acls: Iterable[Acl]) -> None:
        """Add ACLs; existing ones are left unchanged. Raises StoreError."""
        wanted = _by_pattern(acls)
        async with self._changing:
            for pattern, new in wanted.items():
                await self._write(pattern, adding=new)
        for acl in (acl for new in wanted.values() for acl in new):
            _log.info("ACL added: %s", acl)

    async def delete(self, acls: Iterable[Acl]) -> None:
        """Delete ACLs; missing ones are ignored. Raises StoreError."""
        unwanted = _by_pattern(acls)
        async with self._changing:
            for pattern, old in unwanted.items():
                await self._write(pattern, deleting=old)
        for acl in (acl for old in unwanted.values() for acl in old):
            _log.info("ACL deleted: %s", acl)

    async def _write(
        self, pattern: ResourcePattern, *, adding: Iterable[Acl] = (), deleting: Iterable[Acl] = ()
    ) -> None:
        """Change the ACLs of a pattern in the store and apply them; retries on conflicts."""
        path, gone = acl_path(pattern), frozenset(deleting)
        while True:
            node = await self._store.get(path)
            held = [] if node is None else _readable(path, pattern, node)
            kept = [acl for acl in held if acl not in gone]
            acls = list(dict.fromkeys([*kept, *adding]))
            operation = _operation(path, node, acls)
            if operation is None:
                break
            if isinstance(operation, Create):
                await self._store.ensure(parent_of(path))
            try:
                await self._store.multi([operation, change_notice(path, self._clock.now_ms())])
            except (BadVersion, NodeExists, NoNode):
                continue
            break
        self.authorizer.set_pattern(pattern, acls)


def _operation(path: str, node: Node | None, acls: list[Acl]) -> Operation | None:
    if node is None:
        return Create(path, encode_acls(acls)) if acls else None
    if not acls:
        return Delete(path, node.version)
    return Set(path, encode_acls(acls), node.version)


def _by_pattern(acls: Iterable[Acl]) -> Mapping[ResourcePattern, list[Acl]]:
    patterns: dict[ResourcePattern, list[Acl]] = {}
    for acl in acls:
        patterns.setdefault(acl.pattern, []).append(acl)
    return patterns


def _readable(path: str, pattern: ResourcePattern, node: Node | None) -> list[Acl]:
    if node is None:
        return []
    try:
        return decode_acls(path, pattern, node.data)
    except OttlaError as error:
        _log.error(
            "ACLs cannot be read, and %s is denied to every user until they are: %s; delete the"
            " ACLs of %s and add them again",
            pattern,
            error.message,
            pattern,
        )
        return [unreadable(pattern)]


def require_acls(acls: Acls | None) -> Acls:
    """Return the ACLs. Raises OttlaError(SECURITY_DISABLED) without an authorizer, as in Kafka.

    Clients know this error: MirrorMaker continues without copying ACLs.
    """
    if acls is None:
        raise OttlaError(
            ErrorCode.SECURITY_DISABLED,
            "No Authorizer is configured: all operations are allowed; set authorizer.class.name",
        )
    return acls


def too_many(count: int) -> None:
    """Raise OttlaError(POLICY_VIOLATION) if one request changes more ACLs than Kafka allows."""
    if count > ACLS_PER_REQUEST_MAX:
        raise OttlaError(
            ErrorCode.POLICY_VIOLATION,
            f"one request may change {ACLS_PER_REQUEST_MAX} ACLs: send several, each with fewer"
            " ACLs or narrower filters",
        )
