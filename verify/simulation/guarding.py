"""ACLs and users that change while faults last, and laws that brokers go by the newest ones.

One administrator denies a topic and allows it again, and sets and removes a user. A producer goes
on sending to that topic. Two laws:

- *stale rules*: a broker that reaches the store has ACLs, decisions and users as the store has,
  half a second after they changed there.
- *stale answer*: once a change is acknowledged, no broker answers by the rules before it: after
  half a second where all brokers reach the store, else after a session and what an election takes.
"""

import asyncio
import contextlib
from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from ottla.base.chance import new_random
from ottla.base.errors import ErrorCode, OttlaError
from ottla.broker.access.acls import Acls
from ottla.broker.login.users import ScramUsers, Wanted
from ottla.client import Admin, Producer, ProducerOptions
from ottla.metadata import paths
from ottla.metadata.nodes import decode_configs
from ottla.metadata.quota_entity import CONFIG_USERS
from ottla.security.acl import Acl, AclFilter, ResourcePattern
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.security.principal import ANONYMOUS
from ottla.security.rules import AclRules
from ottla.security.sasl.scram_keys import ScramCredential, ScramMechanism
from ottla.security.stored import decode_acls, pattern_of
from ottla.testing.simulation.machine.machine import Machine
from ottla.testing.simulation.machine.world import World

GUARDED = "guarded"
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
}
_DENY = Acl(
    ResourcePattern(AclResource.TOPIC, GUARDED), "User:*", "*", AclOperation.WRITE, Permission.DENY
)
_USER, _ITERATIONS = "guard", 4096
_MECHANISM = ScramMechanism.SCRAM_SHA_256
_DENIED = (ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
# How soon rules hold on a broker that reaches the store.
_SOON_S = 0.5
# How much later than its session's end a broker that does not reach it has no leadership.
_ELECTION_S = 5.0
_EVERY_S = 1.0
_AGAIN_S = 0.1
_PROBE_S = 0.05
_SENDING = ProducerOptions(
    linger_ms=0,
    enable_idempotence=False,
    request_timeout_ms=1_000,
    connect_timeout_ms=1_000,
    delivery_timeout_ms=2_000,
    retry_backoff_ms=20,
    retry_backoff_max_ms=200,
)


@dataclass(frozen=True, slots=True)
class RuleChange:
    """A change of the rules: from when it may hold, and when it was acknowledged."""

    denies: bool
    begin_s: float
    acknowledged_s: float


@dataclass(frozen=True, slots=True)
class Probe:
    """A record that was sent, and whether it was denied."""

    begin_s: float
    end_s: float
    is_denied: bool


class Guarding:
    """All of it for one run. `look` is called often."""

    def __init__(self, world: World, session_ms: int) -> None:
        self._world = world
        self._late_s = session_ms / 1000 + _ELECTION_S
        self.changes: list[RuleChange] = []
        self.probes: list[Probe] = []
        self.is_over = False
        # Whether a change is on its way, so that either answer is right.
        self._is_changing = False
        # The newest notice of a change, the last one that was deleted, and since when it is so.
        self._newest = "", b""
        self._stored_s = 0.0
        # Since when each broker's process has reached the store without a break.
        self._in_touch_s: dict[tuple[int, int], float] = {}
        # The last moment at which some broker did not.
        self._out_of_touch_s = 0.0

    def start(self) -> None:
        """Begin to change and to send, each in a process of its own."""
        loop = self._world.loop
        for name, life in (("guard", self._change), ("probe", self._send)):
            self._world.user_process(name).spawn(loop, life())

    async def _change(self) -> None:
        chance = new_random()
        async with Admin(self._world.bootstrap) as admin:
            denies = True
            while not self.is_over:
                await asyncio.sleep(chance.expovariate(1 / _EVERY_S))
                await self._until_acknowledged(admin, denies=denies)
                self._change_user(chance)
                denies = not denies

    async def _until_acknowledged(self, admin: Admin, *, denies: bool) -> None:
        begin_s = self._world.loop.time()
        self._is_changing = True
        while not self.is_over:
            try:
                if denies:
                    await admin.acls.create([_DENY])
                else:
                    await admin.acls.delete(AclFilter(name=GUARDED))
            except OttlaError:
                await asyncio.sleep(_AGAIN_S)
            else:
                now_s = self._world.loop.time()
                self.changes.append(RuleChange(denies, begin_s, now_s))
                self._is_changing = False
                self._world.note("guard", "denies" if denies else "allows")
                self._world.count("rules changed")
                return

    def _change_user(self, chance: Random) -> None:
        """Let some broker set or remove the user: of a password no more than hashes are sent."""
        machine = chance.choice(list(self._world.machines.values()))
        if machine.is_ready and machine.process is not None and machine.broker is not None:
            key = chance.randbytes(32)
            made = ScramCredential(chance.randbytes(16), _ITERATIONS, key, key)
            wanted = {_MECHANISM: made if chance.random() < 0.5 else None}
            altering = _altering(machine.broker.parts.login.users, wanted)
            machine.process.spawn(self._world.loop, altering)

    async def _send(self) -> None:
        async with Producer(self._world.bootstrap, **_SENDING) as producer:
            while not self.is_over:
                await asyncio.sleep(_PROBE_S)
                begin_s = self._world.loop.time()
                try:
                    for delivery in await producer.send_batch(GUARDED, [b"x"], partition=0):
                        await delivery
                except OttlaError as error:
                    if error.code in _DENIED:
                        self._note(begin_s, is_denied=True)
                else:
                    self._note(begin_s, is_denied=False)

    def _note(self, begin_s: float, *, is_denied: bool) -> None:
        now_s = self._world.loop.time()
        probe = Probe(begin_s, now_s, is_denied)
        self.probes.append(probe)
        self._world.count("denied" if is_denied else "allowed")
        if self.changes and (wrong := self._wrong(probe)):
            self._world.fail(wrong)

    def _wrong(self, probe: Probe) -> str:
        """What is wrong with an answer by the last change; "" where it may be right."""
        change = self.changes[-1]
        if change.denies == probe.is_denied:
            return ""
        is_calm = self._out_of_touch_s < change.begin_s
        limit_s = change.acknowledged_s + (_SOON_S if is_calm else self._late_s)
        if probe.begin_s <= limit_s or self._is_changing:
            return ""
        said = "denied" if probe.is_denied else "allowed"
        late_s = probe.begin_s - change.acknowledged_s
        return f"stale answer: {said} {late_s:.1f} s after the change was acknowledged"

    # ------------------------------------------------------------ what brokers hold

    def look(self) -> None:
        """Compare what brokers hold with what the store does."""
        now_s = self._world.loop.time()
        # Not what it has, which may have changed to and fro since the last look; a notice may have
        # been deleted since.
        entries = self._world.tree.entries
        notices = f"{paths.CONFIG_CHANGES}/"
        left = max((path for path in entries if path.startswith(notices)), default="")
        folder = entries.get(paths.CONFIG_CHANGES)
        newest = left, folder.data if folder is not None else b""
        if newest != self._newest:
            self._newest, self._stored_s = newest, now_s
        for machine in self._world.machines.values():
            if not self._is_in_touch(machine):
                self._out_of_touch_s = now_s
                self._in_touch_s.pop((machine.broker_id, machine.starts), None)
                continue
            since_s = self._in_touch_s.setdefault((machine.broker_id, machine.starts), now_s)
            if now_s - max(since_s, self._stored_s) > _SOON_S and machine.broker is not None:
                parts = machine.broker.parts
                assert parts.access.acls is not None
                self._compare(machine.host, parts.access.acls, parts.login.users)

    def _is_in_touch(self, machine: Machine) -> bool:
        reachable = self._world.store_faults.reachable(machine.host)
        return machine.is_ready and reachable and not machine.is_paused

    def _read(self) -> tuple[frozenset[Acl], frozenset[str]]:
        """The ACLs, and the users with a credential, in the store."""
        acls: list[Acl] = []
        users: list[str] = []
        for path, entry in self._world.tree.entries.items():
            pattern = pattern_of(path)
            if pattern is not None:
                acls += decode_acls(path, pattern, entry.data)
            elif path.startswith(f"{CONFIG_USERS}/") and entry.data:
                credential = decode_configs(path, entry.data).get(_MECHANISM.sasl_name)
                users += [] if credential is None else [f"{path}={credential}"]
        return frozenset(acls), frozenset(users)

    def _compare(self, host: str, own: Acls, own_users: ScramUsers) -> None:
        acls, users = self._read()
        authorizer = own.authorizer
        held = frozenset(authorizer.rules)
        if held != acls:
            self._world.fail(f"stale rules: {host} has {len(held)} ACLs, the store {len(acls)}")
        asked = (ANONYMOUS, "probe", AclOperation.WRITE, AclResource.TOPIC, GUARDED)
        fresh = Authorizer(allow_everyone_if_no_acl=True, rules=AclRules(acls))
        if authorizer.allows(*asked) != fresh.explain(*asked).allowed:
            self._world.fail(f"stale rules: {host} decides by other ACLs than it has")
        if _named(own_users.all()) != frozenset(each.split("=", 1)[0] for each in users):
            self._world.fail(f"stale rules: {host} has other users than the store")


async def _altering(users: ScramUsers, wanted: Wanted) -> None:
    """The law is about what the store has, whatever became of the change."""
    with contextlib.suppress(OttlaError):
        await users.alter(_USER, wanted)


def _named(users: Mapping[str, Mapping[ScramMechanism, object]]) -> frozenset[str]:
    return frozenset(f"{CONFIG_USERS}/{name}" for name, held in users.items() if held)
