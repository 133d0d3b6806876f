"""The cluster's users with SCRAM credentials: reads and changes them in the store.

They are stored where Kafka kept them in ZooKeeper: in the node of the user that also has its
quotas. Every broker keeps all users in memory, and is notified of changes in the same way as of
changed settings.
"""

import hmac
import logging
from asyncio import Lock
from collections.abc import Awaitable, Callable, Mapping

from ottla.base.clock import Clock
from ottla.base.errors import OttlaError
from ottla.broker.configs.changes import change
from ottla.coordination.interface.store import Store
from ottla.metadata.nodes import decode_configs
from ottla.metadata.quota_entity import CONFIG_USERS, QuotaEntity, quota_entity, quota_path
from ottla.security.sasl.scram_keys import (
    ScramCredential,
    ScramMechanism,
    credential_text,
    parse_credential,
)

_log = logging.getLogger(__name__)

OnChanged = Callable[[str], Awaitable[None]]
# The new credential for each mechanism; None removes the credential.
Wanted = Mapping[ScramMechanism, ScramCredential | None]


class ScramUsers:
    """Finds, lists and alters credentials."""

    def __init__(self, store: Store, clock: Clock, secret: bytes) -> None:
        """Create the object.

        The answers to unknown users are derived from the cluster's `secret`.
        """
        self._store = store
        self._clock = clock
        # The fake credentials of unknown users are derived from it.
        self.secret = hmac.digest(secret, b"what unknown users are shown", "sha256")
        self._changing = Lock()
        self._users: dict[str, dict[ScramMechanism, ScramCredential]] = {}
        # Called with a user whose last credential was removed.
        self.on_removed: Callable[[str], None] = lambda _user: None

    async def load(self) -> None:
        """Read all credentials. An unreadable one is logged, and its user cannot log in."""
        async with self._changing:
            for path, node in (await self._store.subtree(CONFIG_USERS)).items():
                user = _user_of(path)
                if user is not None:
                    self._take(user, _configs(path, node.data))

    def before(self, others: OnChanged) -> OnChanged:
        """Return a callback for change notifications: reads credentials, then calls `others`.

        The node of a user also holds quotas, which `others` reads.
        """

        async def on_changed(entity: str) -> None:
            path = f"/config/{entity}"
            user = _user_of(path)
            if user is not None:
                async with self._changing:
                    node = await self._store.get(path)
                    self._take(user, {} if node is None else _configs(path, node.data))
            await others(entity)

        return on_changed

    def find(self, mechanism: ScramMechanism, user: str) -> ScramCredential | None:
        """Return the user's credential for the mechanism."""
        return self._users.get(user, {}).get(mechanism)

    def all(self) -> Mapping[str, Mapping[ScramMechanism, ScramCredential]]:
        """Return all users with credentials."""
        return self._users

    def mechanism_of_unknown(self, user: str) -> ScramMechanism:
        """Choose a mechanism for an unknown user, with the same frequencies as among real users."""
        first = [next(iter(each)) for each in self._users.values()]
        if not first:
            return ScramMechanism.SCRAM_SHA_256
        drawn = hmac.digest(self.secret, user.encode(), "sha256")
        return sorted(first, key=lambda each: each.number)[
            int.from_bytes(drawn[:8], "big") * len(first) >> 64
        ]

    async def alter(self, user: str, wanted: Wanted) -> None:
        """Set and remove credentials of one user, on all brokers. Raises StoreError."""
        path = quota_path(QuotaEntity(user=user))
        async with self._changing:
            self._take(user, await self._write(path, wanted))
        for mechanism, credential in wanted.items():
            what = "removed" if credential is None else "set"
            _log.info("the %s credential of user %r was %s", mechanism.sasl_name, user, what)

    async def _write(self, path: str, wanted: Wanted) -> dict[str, str]:
        def decide(stored: Mapping[str, str] | None) -> dict[str, str]:
            configs = dict(stored or {})
            for mechanism, credential in wanted.items():
                if credential is None:
                    configs.pop(mechanism.sasl_name, None)
                else:
                    configs[mechanism.sasl_name] = credential_text(credential)
            return configs

        await self._store.ensure(path)
        return await change(self._store, path, decide, self._clock) or {}

    def _take(self, user: str, configs: Mapping[str, str]) -> None:
        found: dict[ScramMechanism, ScramCredential] = {}
        for mechanism in ScramMechanism:
            text = configs.get(mechanism.sasl_name)
            if text is None:
                continue
            try:
                found[mechanism] = parse_credential(text)
            except ValueError as error:
                _log.error(
                    "the %s credential of user %r cannot be read (%s), and the user cannot log in"
                    " with it: set it again with `ottla user password`",
                    mechanism.sasl_name,
                    user,
                    error,
                )
        was_there = self._users.pop(user, None) is not None
        if found:
            self._users[user] = found
        if was_there and not found:
            self.on_removed(user)


def _user_of(path: str) -> str | None:
    """Return the user whose node is at `path`.

    Return None for other nodes, and for the node of the default for all users.
    """
    entity = quota_entity(path)
    if entity is None or entity.client_id is not None or not isinstance(entity.user, str):
        return None
    return entity.user


def _configs(path: str, data: bytes) -> dict[str, str]:
    if not data:
        return {}
    try:
        return decode_configs(path, data)
    except OttlaError as error:
        _log.error("credentials cannot be read; set them again: %s", error.message)
        return {}
