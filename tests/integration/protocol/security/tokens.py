"""What a broker answers to requests for delegation tokens, as lines that can be compared."""

from collections.abc import Iterable
from typing import Any

from rig.wire_client import WireClient

from ottla.base.errors import ErrorCode
from ottla.security.names import AclOperation, AclResource, PatternType, Permission
from ottla.security.sasl.scram_keys import ScramMechanism
from ottla.security.tokens import token_hmac, token_password
from ottla.wire.messages.acls import (
    AclCreation,
    CreateAclsRequest,
    DeleteAclsFilter,
    DeleteAclsRequest,
    DescribeAclsRequest,
)
from ottla.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenPrincipal,
)
from ottla.wire.messages.metadata import MetadataRequest
from ottla.wire.messages.topics import CreatableTopic, CreateTopicsRequest
from tests.integration.protocol.security.pair import SETTINGS, Ports, scram_login, until

_HOUR_MS = 3_600_000
_LONG_MAX = 2**63 - 1
_TOPIC = "tokens-of-alice"
# A filter of ACLs that means all of them.
_EVERY: dict[str, Any] = {
    "resource_type_filter": 1,
    "resource_name_filter": None,
    "pattern_type_filter": 1,
    "principal_filter": None,
    "host_filter": None,
    "operation": 1,
    "permission_type": 1,
}


def transcript(ports: Ports) -> list[str]:
    """Everything below, on one broker."""
    script = Script(ports)
    script.making()
    script.not_allowed()
    script.renewing()
    script.ending()
    script.seeing()
    script.logging_in()
    return script.lines


class Script:
    """Requests of three users and an administrator, and what was answered."""

    def __init__(self, ports: Ports) -> None:
        self.ports = ports
        self.lines: list[str] = []
        self.admin = ports.admin()
        self.alice, self.bob, self.carol = (ports.user(n) for n in ("alice", "bob", "carol"))

    def say(self, what: str, code: int, *more: object) -> None:
        words = " ".join(str(each) for each in more)
        self.lines.append(f"{what}: {ErrorCode(code).name} {words}".rstrip())

    # -- requests

    def create(
        self,
        what: str,
        client: WireClient,
        version: int = 3,
        renewers: Iterable[tuple[str, str]] = (),
        **fields: Any,
    ) -> Any:
        """Make a token, and note what is answered."""
        request = CreateDelegationTokenRequest(
            renewers=[TokenPrincipal(principal_type=t, principal_name=n) for t, n in renewers],
            **{"max_lifetime_ms": -1, **fields},
        )
        answer = client.call(request, version)
        owner = f"{answer.principal_type}:{answer.principal_name}"
        requester = (
            f"{answer.token_requester_principal_type}:{answer.token_requester_principal_name}"
        )
        times = ""
        if not answer.error_code:
            issued_ms = answer.issue_timestamp_ms
            times = (
                f"{answer.expiry_timestamp_ms - issued_ms} {answer.max_timestamp_ms - issued_ms}"
            )
            key = SETTINGS["delegation.token.secret.key"]
            assert answer.hmac == token_hmac(key, answer.token_id)
            assert len(answer.token_id) == 22
        self.say(f"create: {what}", answer.error_code, owner, requester, times)
        if not answer.error_code:
            # Until the controller and the broker know it.
            until(lambda: self._renew(self.carol, answer.hmac), _is_known)
            until(
                lambda: [one.token_id for one in self._tokens(client).tokens],
                lambda ids: answer.token_id in ids,
            )
        return answer

    def _renew(self, client: WireClient, hmac: bytes, period_ms: int = -1, version: int = 2) -> Any:
        return client.call(
            RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), version
        )

    def _expire(self, client: WireClient, hmac: bytes, period_ms: int, version: int = 2) -> Any:
        return client.call(
            ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), version
        )

    def _tokens(self, client: WireClient, owners: Any = None, version: int = 3) -> Any:
        named = (
            None
            if owners is None
            else [TokenPrincipal(principal_type=t, principal_name=n) for t, n in owners]
        )
        return client.call(DescribeDelegationTokenRequest(owners=named), version)

    def renew(self, what: str, client: WireClient, made: Any, *words: int) -> None:
        answer = self._renew(client, made.hmac, *words)
        self.say(f"renew: {what}", answer.error_code, _hours(answer, made))

    def expire(self, what: str, client: WireClient, made: Any, *words: int) -> None:
        answer = self._expire(client, made.hmac, *words)
        self.say(f"expire: {what}", answer.error_code, _hours(answer, made))

    # -- parts

    def making(self) -> None:
        """Owners, renewers and lifetimes."""
        self.create("version 1", self.alice, 1)
        self.create("version 2", self.alice, 2, [("User", "bob")])
        self.create("version 3", self.alice)
        for lifetime_ms in (0, 1, 5000, 3 * _HOUR_MS, _LONG_MAX, -2):
            self.create(f"lifetime {lifetime_ms}", self.alice, max_lifetime_ms=lifetime_ms)
        self.create("a group renews", self.alice, renewers=[("User", "bob"), ("Group", "g")])
        self.create("a renewer without a name", self.alice, renewers=[("User", "")])
        own: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "alice"}
        self.create("of herself, named", self.alice, **own)
        self.create("no owner", self.alice, owner_principal_type=None, owner_principal_name=None)
        self.create("an empty owner", self.alice, owner_principal_type="Group")
        self.create("of another, no ACL", self.bob, **own)
        self.create(
            "of another, no ACL, a group renews", self.bob, renewers=[("Group", "g")], **own
        )
        self.allow("User:bob", AclOperation.CREATE_TOKENS, AclResource.USER, "User:alice")
        self.create("of another", self.bob, **own)
        other: dict[str, Any] = {"owner_principal_type": "Group", "owner_principal_name": "alice"}
        self.create("of a group", self.bob, **other)
        self.forbid()

    def not_allowed(self) -> None:
        """Over a listener without logins."""
        own: dict[str, Any] = {"owner_principal_type": "User", "owner_principal_name": "alice"}
        self.create("in the clear", self.admin)
        self.create("in the clear, of another", self.admin, **own)
        self.create("in the clear, a group renews", self.admin, renewers=[("Group", "g")])
        self.say("renew: in the clear", self._renew(self.admin, b"x").error_code)
        self.say("expire: in the clear", self._expire(self.admin, b"x", -1).error_code)
        self.say("describe: in the clear", self._tokens(self.admin).error_code)

    def renewing(self) -> None:
        """By owner, renewer, requester and others."""
        made = self.create("to renew", self.alice, renewers=[("User", "bob")])
        for version in (1, 2):
            self.renew(f"version {version}", self.alice, made, -1, version)
        for period_ms in (0, 5 * _HOUR_MS, 48 * _HOUR_MS, _LONG_MAX, -9):
            self.renew(f"period {period_ms}", self.alice, made, period_ms)
        self.renew("by a renewer", self.bob, made)
        self.renew("by another", self.carol, made)
        short = self.create("short", self.alice, max_lifetime_ms=7 * _HOUR_MS)
        self.renew("beyond the lifetime", self.alice, short, 9 * _HOUR_MS)
        for what, hmac in (("unknown", b"x" * 64), ("empty", b"")):
            self.say(f"renew: {what}", self._renew(self.alice, hmac).error_code)
            self.say(f"expire: {what}", self._expire(self.alice, hmac, -1).error_code)

    def ending(self) -> None:
        """At once, later, and what is over already."""
        made = self.create("to end", self.alice, renewers=[("User", "bob")])
        self.expire("by another", self.carol, made, -1)
        for version in (1, 2):
            self.expire(f"version {version}", self.alice, made, 5 * _HOUR_MS, version)
        self.expire("later than before", self.bob, made, 30 * _HOUR_MS)
        self.expire("beyond the lifetime", self.bob, made, _LONG_MAX)
        self.expire("at once", self.alice, made, 0)
        over = ErrorCode.DELEGATION_TOKEN_EXPIRED
        until(lambda: self._renew(self.carol, made.hmac).error_code, lambda code: code == over)
        self.renew("expired", self.alice, made)
        self.renew("expired, by another", self.carol, made)
        self.expire("expired", self.alice, made, 5)
        self.expire("expired, by another", self.carol, made, 5)
        self.say("expire: removed", self._expire(self.alice, made.hmac, -1).error_code)
        gone = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        until(lambda: self._renew(self.carol, made.hmac).error_code, lambda code: code == gone)
        self.renew("removed", self.alice, made)
        self.expire("removed again", self.alice, made, -1)

    def seeing(self) -> None:
        """Which tokens each user sees, by name of the token."""
        for who, client in (("alice", self.alice), ("bob", self.bob), ("carol", self.carol)):
            for token in self._tokens(client).tokens:
                if ("User", who) == (token.principal_type, token.principal_name):
                    self._expire(client, token.hmac, -1)
        self.allow("User:bob", AclOperation.CREATE_TOKENS, AclResource.USER, "User:carol")
        names = {
            self.create("A", self.alice, renewers=[("User", "bob")]).token_id: "A",
            self.create("B", self.bob).token_id: "B",
            self.create(
                "C", self.bob, owner_principal_type="User", owner_principal_name="carol"
            ).token_id: "C",
        }
        self.forbid()
        first = next(iter(names))
        grants: tuple[tuple[str, tuple[Any, ...] | None], ...] = (
            ("no ACL", None),
            ("the token", (AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, first)),
            ("all tokens", (AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN, "*")),
            ("the user", (AclOperation.DESCRIBE_TOKENS, AclResource.USER, "User:bob")),
            ("the user, other", (AclOperation.DESCRIBE, AclResource.USER, "User:bob")),
            ("every user", (AclOperation.ALL, AclResource.USER, "*")),
        )
        for grant, rule in grants:
            if rule is not None:
                for user in ("alice", "carol"):
                    self.allow(f"User:{user}", *rule)
            for who, client in (("alice", self.alice), ("bob", self.bob), ("carol", self.carol)):
                for owners in (None, [], ["alice"], ["bob"], ["carol", "alice"], ["nobody"]):
                    asked = None if owners is None else [("User", owner) for owner in owners]
                    for version in (1, 2, 3) if owners is None else (3,):
                        answer = self._tokens(client, asked, version)
                        seen = sorted(names.get(one.token_id, "?") for one in answer.tokens)
                        what = f"describe: {who}, {grant}, {owners}, {version}"
                        self.say(what, answer.error_code, *[one for one in seen if one != "?"])
            self.forbid()
        for token in self._tokens(self.carol).tokens:
            told = (
                token.principal_name,
                token.token_requester_principal_name,
                [one.principal_name for one in token.renewers],
                len(token.hmac),
            )
            if token.token_id in names:
                self.say(f"described: {names[token.token_id]}", 0, *told)

    def logging_in(self) -> None:
        """By SCRAM, as the owner; what the client may ask for then."""
        topic = CreatableTopic(name=_TOPIC, num_partitions=1, replication_factor=1)
        self.admin.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 5)
        self.allow("User:alice", AclOperation.DESCRIBE, AclResource.TOPIC, _TOPIC)
        until(lambda: self.topics(self.alice), lambda topics: topics == [_TOPIC])
        made = self.create("to log in", self.alice, max_lifetime_ms=5 * _HOUR_MS)
        password = token_password(made.hmac)
        for mechanism in ScramMechanism:
            client, answer = scram_login(
                self.ports.sasl, mechanism, made.token_id, password, is_token=True
            )
            hours = round(answer.session_lifetime_ms / _HOUR_MS)
            self.say(f"login: {mechanism.sasl_name}", answer.error_code, hours)
            self.lines.append(f"topics of the token: {self.topics(client)}")
            self.create("by a token", client)
            self.say("renew: by a token", self._renew(client, made.hmac).error_code)
            self.say("expire: by a token", self._expire(client, made.hmac, -1).error_code)
            self.say("describe: by a token", self._tokens(client).error_code)
        for what, words in (
            ("wrong secret", (made.token_id, "wrong", True)),
            ("unknown token", ("no-such-token", password, True)),
            ("a token as a user", (made.token_id, password, False)),
        ):
            user, secret, is_token = words
            _, answer = scram_login(
                self.ports.sasl, ScramMechanism.SCRAM_SHA_256, user, secret, is_token=is_token
            )
            self.say(f"login: {what}", answer.error_code, answer.session_lifetime_ms)

    def topics(self, client: WireClient) -> list[str]:
        """The topics that a client may see."""
        return [one.name for one in client.call(MetadataRequest(topics=None), 12).topics]

    # -- ACLs

    def allow(self, who: str, operation: AclOperation, kind: AclResource, name: str) -> None:
        creation = AclCreation(
            resource_type=kind,
            resource_name=name,
            resource_pattern_type=PatternType.LITERAL,
            principal=who,
            host="*",
            operation=operation,
            permission_type=Permission.ALLOW,
        )
        (result,) = self.admin.call(CreateAclsRequest(creations=[creation]), 3).results
        self.lines.append(f"ACL {operation.name} {kind.name}: {ErrorCode(result.error_code).name}")
        until(self._rules, lambda rules: (who, kind, name) in rules)

    def forbid(self) -> None:
        """Delete all ACLs."""
        self.admin.call(DeleteAclsRequest(filters=[DeleteAclsFilter(**_EVERY)]), 3)
        until(self._rules, lambda rules: rules == [])

    def _rules(self) -> list[tuple[str, int, str]]:
        return [
            (acl.principal, one.resource_type, one.resource_name)
            for one in self.admin.call(DescribeAclsRequest(**_EVERY), 3).resources
            for acl in one.acls
        ]


def _is_known(answer: Any) -> bool:
    return bool(answer.error_code != ErrorCode.DELEGATION_TOKEN_NOT_FOUND)


def _hours(answer: Any, made: Any) -> str:
    """When the token ends, in hours from its beginning; -1 and 0 stand for no time."""
    if answer.expiry_timestamp_ms <= 0:
        return ""
    return str(round((answer.expiry_timestamp_ms - made.issue_timestamp_ms) / _HOUR_MS))
