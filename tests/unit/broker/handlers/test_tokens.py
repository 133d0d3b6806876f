"""Delegation tokens: who gets them, and Kafka's code for each mistake."""

import asyncio
import base64

import pytest
from rig.secret_search import register

from ottla.base.errors import ErrorCode
from ottla.broker.access.part import Gate
from ottla.broker.configs.changes import ConfigChanges
from ottla.broker.handlers.delegation_tokens import (
    CreateDelegationToken,
    DescribeDelegationToken,
    ExpireDelegationToken,
    RenewDelegationToken,
)
from ottla.broker.login.tokens import DelegationTokens, new_tokens
from ottla.coordination.interface.store import Set
from ottla.security.acl import Acl, ResourcePattern
from ottla.security.authorizer import Authorizer
from ottla.security.names import AclOperation, AclResource, Permission
from ottla.security.principal import Principal
from ottla.security.rules import AclRules
from ottla.security.stored import token_path
from ottla.security.tokens import TokenRules, token_hmac
from ottla.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
    ExpireDelegationTokenRequest,
    RenewDelegationTokenRequest,
    TokenPrincipal,
)

from .replica_world import Asked, Line, World, call, play

ALICE, BOB, CAROL = (Principal("User", name) for name in ("alice", "bob", "carol"))
DAY_MS = 86_400_000


class TokenWorld(World):
    """A broker with a key; a second one, of which the first hears by notifications."""

    def __init__(self, settings=None):
        super().__init__({"delegation.token.secret.key": "secret key", **(settings or {})})
        self.tokens = new_tokens(self.settings, self.store, self.runtime)
        self.requests = []

    def line(self, principal, *, by_token=False):
        line = Line()
        line.principal, line.by_token = principal, by_token
        return line

    async def create(self, principal=ALICE, version=3, **fields):
        line = fields.pop("line", None) or self.line(principal)
        request = CreateDelegationTokenRequest(
            **{"max_lifetime_ms": -1, "owner_principal_name": None, **fields}
        )
        made = await call(CreateDelegationToken(self.tokens), request, version, line=line)
        if made.hmac:
            register(made.hmac, "the HMAC of a token")
        return made

    async def renew(self, hmac, principal=ALICE, period_ms=-1):
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)
        return await call(RenewDelegationToken(self.tokens), request, line=self.line(principal))

    async def expire(self, hmac, principal=ALICE, period_ms=-1):
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        return await call(ExpireDelegationToken(self.tokens), request, line=self.line(principal))

    async def describe(self, *owners, principal=ALICE, authorizer=None):
        named = [TokenPrincipal(principal_type=one.type, principal_name=one.name) for one in owners]
        request = DescribeDelegationTokenRequest(owners=named or None)
        handler, line = DescribeDelegationToken(self.tokens), self.line(principal)
        if authorizer is None:
            return await call(handler, request, line=line)
        context, response = self.admitted(handler, request, line, authorizer)
        assert response is None
        response = handler.handle(context, request)
        context.amend(response)
        return response

    def admitted(self, handler, request, line, authorizer):
        """The request's context behind the gate, and its answer where it is denied."""
        gate = Gate(authorizer, self.view, self.settings)
        context = Asked(handler, request, line=line).context
        denied = gate.admit(
            gate.access(line), context, request, handler.api.needs, handler.on_error
        )
        return context, None if denied is None else denied.response


def world_of(scenario, settings=None):
    async def prepared(world):
        await world.store.ensure("/config/changes")
        await scenario(world)

    play(prepared, settings, kind=TokenWorld)


def rules(*acls):
    authorizer = Authorizer(frozenset(), allow_everyone_if_no_acl=False)
    authorizer.set_rules(
        AclRules(
            [
                Acl(ResourcePattern(kind, name), str(who), "*", operation, Permission.ALLOW)
                for who, operation, kind, name in acls
            ]
        )
    )
    return authorizer


def renewers(*principals):
    return [TokenPrincipal(principal_type=one.type, principal_name=one.name) for one in principals]


def test_a_token_is_made_described_and_known_to_other_brokers():
    """With the times of the settings; the store has no secret."""

    async def scenario(world):
        made = await world.create(renewers=renewers(BOB))
        now_ms = world.clock.now_ms()
        assert made.error_code == 0
        assert (made.principal_type, made.principal_name) == ("User", "alice")
        assert made.token_requester_principal_name == "alice"
        assert made.issue_timestamp_ms == now_ms
        assert made.expiry_timestamp_ms == now_ms + DAY_MS
        assert made.max_timestamp_ms == now_ms + 7 * DAY_MS
        assert made.hmac == token_hmac("secret key", made.token_id)
        (told,) = (await world.describe()).tokens
        assert (told.token_id, told.hmac, told.principal_name) == (
            made.token_id,
            made.hmac,
            "alice",
        )
        assert [one.principal_name for one in told.renewers] == ["bob"]
        other = DelegationTokens(world.store, world.runtime, "secret key", TokenRules(1, 1))
        await other.load()
        assert list(other.all()) == list(world.tokens.all())
        node = await world.store.get(token_path(made.token_id))
        assert base64.b64encode(made.hmac) not in node.data

    world_of(scenario)


@pytest.mark.parametrize("version", [1, 2])
def test_earlier_versions_leave_the_requester_out(version):
    """It has no place in their answers."""

    async def scenario(world):
        made = await world.create(version=version, owner_principal_name="")
        assert (made.error_code, made.principal_name) == (0, "alice")
        assert made.token_requester_principal_name == ""
        request = DescribeDelegationTokenRequest(owners=None)
        handler = DescribeDelegationToken(world.tokens)
        answer = await call(handler, request, version, line=world.line(ALICE))
        assert [one.token_id for one in answer.tokens] == [made.token_id]

    world_of(scenario)


def test_another_owner_is_named_and_the_requester_too():
    """The owner may renew the token, the requester only sees it (KIP-373)."""

    async def scenario(world):
        made = await world.create(BOB, owner_principal_type="User", owner_principal_name="alice")
        assert (made.principal_name, made.token_requester_principal_name) == ("alice", "bob")
        assert (await world.renew(made.hmac)).error_code == 0
        refused = await world.renew(made.hmac, BOB)
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert refused.expiry_timestamp_ms == -1

    world_of(scenario)


@pytest.mark.parametrize(
    ("principal", "by_token"), [(Principal("User", "ANONYMOUS"), False), (ALICE, True)]
)
def test_a_client_without_an_identity_of_its_own_gets_no_token(principal, by_token):
    """Nor one that has logged in by a token; all four requests say so."""

    async def scenario(world):
        made = await world.create()
        line = world.line(principal, by_token=by_token)
        requests = (
            (CreateDelegationToken, CreateDelegationTokenRequest()),
            (RenewDelegationToken, RenewDelegationTokenRequest(hmac=made.hmac)),
            (ExpireDelegationToken, ExpireDelegationTokenRequest(hmac=made.hmac)),
            (DescribeDelegationToken, DescribeDelegationTokenRequest(owners=None)),
        )
        for kind, request in requests:
            answer = await call(kind(world.tokens), request, line=line)
            assert answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED

    world_of(scenario)


def test_without_a_key_there_are_no_tokens():
    """All four requests say so; a renewer that is no user is found before."""

    async def scenario(world):
        assert world.tokens is None
        disabled = ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED
        assert (await world.create()).error_code == disabled
        assert (await world.renew(b"x")).error_code == disabled
        assert (await world.expire(b"x")).error_code == disabled
        assert (await world.describe()).error_code == disabled
        odd = await world.create(renewers=renewers(Principal("Group", "g")))
        assert odd.error_code == ErrorCode.INVALID_PRINCIPAL_TYPE
        assert (odd.principal_name, odd.token_id, odd.max_timestamp_ms) == ("alice", "", -1)

    world_of(scenario, {"delegation.token.secret.key": ""})


def test_the_former_name_of_the_key_is_taken():
    """The present one wins."""

    async def scenario(world):
        made = await world.create()
        assert made.hmac == token_hmac("former", made.token_id)

    former = {"delegation.token.master.key": "former"}
    world_of(scenario, {**former, "delegation.token.secret.key": ""})


def test_a_token_is_renewed_and_ends():
    """Until its end it can be renewed; a removed one is unknown."""

    async def scenario(world):
        made = await world.create(renewers=renewers(BOB), max_lifetime_ms=3 * DAY_MS)
        start_ms = world.clock.now_ms()
        world.clock.advance(DAY_MS)
        renewed = await world.renew(made.hmac, BOB)
        assert (renewed.error_code, renewed.expiry_timestamp_ms) == (0, start_ms + 2 * DAY_MS)
        sooner = await world.expire(made.hmac, BOB, 5)
        assert sooner.expiry_timestamp_ms == start_ms + DAY_MS + 5
        world.clock.advance(6)
        expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
        assert (await world.renew(made.hmac)).error_code == expired
        assert (await world.expire(made.hmac, period_ms=5)).error_code == expired
        removed = await world.expire(made.hmac)
        assert (removed.error_code, removed.expiry_timestamp_ms) == (0, world.clock.now_ms())
        unknown = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert (await world.renew(made.hmac)).error_code == unknown
        assert (await world.expire(b"")).error_code == unknown
        assert (await world.describe()).tokens == []

    world_of(scenario)


def test_a_token_that_another_broker_has_just_made_is_found():
    """Before this one is notified; and what another has changed is not undone."""

    async def scenario(world):
        other = new_tokens(world.settings, world.store, world.runtime)
        made = await other.create("id", ALICE, ALICE, [], -1)
        world.clock.advance(10)
        answer = await world.renew(other.hmac(made))
        assert answer.error_code == 0
        assert await other.expire(other.hmac(made), ALICE, -1) == world.clock.now_ms()
        gone = await world.renew(other.hmac(made))
        assert gone.error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND

    world_of(scenario)


def test_tokens_that_went_while_notices_were_missed_are_forgotten():
    """A broker that reads all tokens again lets no client in with those that are gone."""

    async def scenario(world):
        other = new_tokens(world.settings, world.store, world.runtime)
        gone, kept = await world.create(), await world.create()
        await other.load()
        await world.expire(gone.hmac)
        assert other.valid(gone.token_id) is not None
        await other.load()
        assert [one.id for one in other.all()] == [kept.token_id]

    world_of(scenario)


def test_only_expired_tokens_are_removed():
    """Also not one that another broker has renewed meanwhile."""

    async def scenario(world):
        other = new_tokens(world.settings, world.store, world.runtime)
        short = await world.create(max_lifetime_ms=10)
        long = await world.create()
        renewed = await world.create()
        await other.load()
        world.clock.advance(DAY_MS)
        await other.renew(renewed.hmac, ALICE, -1)
        world.clock.advance(1)
        await world.tokens.remove_expired()
        assert await world.store.children("/delegation_token/tokens") == [renewed.token_id]
        assert {short.token_id, long.token_id}.isdisjoint(
            one.token_id for one in (await world.describe()).tokens
        )

    world_of(scenario)


def test_changes_are_heard_of_by_their_notifications():
    """A node that cannot be read lets no client in, and is logged; others' nodes are not ours."""

    async def scenario(world):
        passed = []

        async def others(entity):
            passed.append(entity)

        other = new_tokens(world.settings, world.store, world.runtime)
        on_changed = other.before(others)
        made = await world.create()
        path = token_path(made.token_id)
        await on_changed(path)
        assert other.valid(made.token_id) is not None
        await world.store.multi([Set(path, b"{}")])
        await on_changed(path)
        assert other.valid(made.token_id) is None
        await on_changed("topics/flights")
        assert passed == ["topics/flights"]

    world_of(scenario)


def test_a_token_is_known_on_other_brokers_at_once():
    """By a notification, without another request; so is its end."""

    async def scenario(world):
        other = new_tokens(world.settings, world.store, world.runtime)
        heard = asyncio.Event()

        async def on_changed(entity):
            await other.before(not_ours)(entity)
            heard.set()

        async def not_ours(entity):
            raise AssertionError(entity)

        changes = ConfigChanges(world.store, world.clock, on_changed, other.load)
        await changes.start()
        changes.follow()
        try:
            made = await world.create()
            await heard.wait()
            assert [one.id for one in other.all()] == [made.token_id]
            heard.clear()
            await world.expire(made.hmac)
            await heard.wait()
            assert list(other.all()) == []
        finally:
            changes.stop()

    world_of(scenario)


def test_only_tokens_that_concern_the_named_owners_are_described():
    """Where owners are named, those that they own, made or may renew."""

    async def scenario(world):
        made = [
            (await world.create(who, renewers=renewers(*by))).token_id
            for who, by in ((ALICE, []), (BOB, [ALICE]), (CAROL, []))
        ]

        async def ids(*owners):
            return [one.token_id for one in (await world.describe(*owners)).tokens]

        assert await ids() == made
        assert await ids(ALICE) == made[:2]
        assert await ids(CAROL, BOB) == made[1:]
        request = DescribeDelegationTokenRequest(owners=[])
        handler = DescribeDelegationToken(world.tokens)
        assert (await call(handler, request, line=world.line(ALICE))).tokens == []

    world_of(scenario)


def test_others_tokens_are_shown_by_acls_only():
    """DESCRIBE on the token, or DESCRIBE_TOKENS on the user who owns it."""

    async def scenario(world):
        of_alice = (await world.create(ALICE)).token_id
        of_bob = (await world.create(BOB)).token_id
        by_carol = (
            await world.create(CAROL, owner_principal_type="User", owner_principal_name="bob")
        ).token_id

        async def seen(*acls):
            answer = await world.describe(principal=CAROL, authorizer=rules(*acls))
            return [one.token_id for one in answer.tokens]

        assert await seen() == [by_carol]
        describe = (CAROL, AclOperation.DESCRIBE, AclResource.DELEGATION_TOKEN)
        assert await seen((*describe, of_alice)) == [of_alice, by_carol]
        of_user = (CAROL, AclOperation.DESCRIBE_TOKENS, AclResource.USER)
        assert await seen((*of_user, "User:bob")) == [of_bob, by_carol]
        assert await seen((*describe, "*")) == [of_alice, of_bob, by_carol]

    world_of(scenario)


@pytest.mark.parametrize("allowed", [True, False])
def test_a_token_of_another_user_needs_an_acl(allowed):
    """CREATE_TOKENS on that user; one's own needs none."""

    async def scenario(world):
        who = "User:alice" if allowed else "User:dave"
        authorizer = rules((BOB, AclOperation.CREATE_TOKENS, AclResource.USER, who))

        def asked(name, line):
            request = CreateDelegationTokenRequest(
                owner_principal_type="User", owner_principal_name=name
            )
            handler = CreateDelegationToken(world.tokens)
            return world.admitted(handler, request, line, authorizer)[1]

        bob = world.line(BOB)
        assert asked("bob", bob) is None
        denied = asked("alice", bob)
        if allowed:
            assert denied is None
            return
        assert denied.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (denied.principal_name, denied.token_requester_principal_name) == ("alice", "bob")
        # A client that may not ask at all is refused by the handler, with that error.
        assert asked("alice", world.line(BOB, by_token=True)) is None

    world_of(scenario)
