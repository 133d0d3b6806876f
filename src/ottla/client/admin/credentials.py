"""Users with SCRAM credentials (KIP-554), and delegation tokens (KIP-48)."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode
from ottla.client.admin.calls import Calls
from ottla.client.common.arguments import Names, checks_calls, name_list
from ottla.client.common.errors import check, refused
from ottla.security.principal import Principal
from ottla.security.sasl.scram_keys import (
    ITERATIONS_DEFAULT,
    SALT_BYTES,
    ScramMechanism,
    mechanism_numbered,
    salted_password,
)
from ottla.security.tokens import DelegationToken, token_password
from ottla.wire.messages.delegation_tokens import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
    TokenPrincipal,
)
from ottla.wire.messages.user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
    UserName,
)

# The pause before asking a broker again whether it has applied a removal.
_PAUSE_S = 0.02


@dataclass(frozen=True, slots=True)
class UserDescription:
    """A user, and the iterations of each of its credentials."""

    name: str
    credentials: Mapping[ScramMechanism, int]


@checks_calls()
class Users:
    """`admin.users`: the users that can log in."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def find(self, names: Names | None = None) -> list[UserDescription]:
        """Return the users with these names that exist; without names, all. Raises OttlaError."""
        wanted = None if names is None else [UserName(name=name) for name in name_list(names)]
        request = DescribeUserScramCredentialsRequest(users=wanted)

        async def ask() -> list[UserDescription]:
            return await self._described(await self._calls.cluster.controller(), request)

        return await self._calls.retried(ask)

    async def _described(
        self, broker_id: int, request: DescribeUserScramCredentialsRequest
    ) -> list[UserDescription]:
        answer = await self._calls.cluster.ask(
            broker_id, request, DescribeUserScramCredentialsResponse
        )
        check(answer.error_code, "describe users", answer.error_message)
        found: list[UserDescription] = []
        for result in answer.results:
            if result.error_code == ErrorCode.RESOURCE_NOT_FOUND:
                continue
            check(result.error_code, f"describe user {result.user}", result.error_message)
            credentials: dict[ScramMechanism, int] = {}
            for info in result.credential_infos:
                mechanism = mechanism_numbered(info.mechanism)
                if mechanism is not None:
                    credentials[mechanism] = info.iterations
            found.append(UserDescription(result.user, credentials))
        return found

    async def set_password(
        self,
        name: str,
        password: str,
        mechanisms: Iterable[ScramMechanism] = tuple(ScramMechanism),
        iterations: int = ITERATIONS_DEFAULT,
    ) -> None:
        """Set a user's password, creating the user if missing. Only a hash is sent.

        Raises OttlaError.
        """
        for mechanism in mechanisms:
            salt = random_bytes(SALT_BYTES)
            salted = await asyncio.to_thread(salted_password, mechanism, password, salt, iterations)
            upsertion = ScramCredentialUpsertion(
                name=name,
                mechanism=mechanism.number,
                iterations=iterations,
                salt=salt,
                salted_password=salted,
            )
            # One by one, because Kafka refuses a request with two credentials of a user.
            await self._alter(
                AlterUserScramCredentialsRequest(upsertions=[upsertion]),
                f"set the password of {name}",
            )

    async def remove(self, name: str) -> None:
        """Remove all credentials of a user, so that it cannot log in any more.

        Raises OttlaError.
        """
        found = await self.find([name])
        if not found:
            raise refused(ErrorCode.RESOURCE_NOT_FOUND, f"remove user {name}", "there is none")
        for mechanism in found[0].credentials:
            deletion = ScramCredentialDeletion(name=name, mechanism=mechanism.number)
            await self._alter(
                AlterUserScramCredentialsRequest(deletions=[deletion]), f"remove user {name}"
            )

    async def end_sessions(self, name: str) -> None:
        """Remove a user, and wait until every live broker has closed the user's connections.

        Only for an Ottla cluster: Kafka keeps open connections. Raises OttlaError.
        """
        await self.remove(name)
        request = DescribeUserScramCredentialsRequest(users=[UserName(name=name)])
        for broker_id in await self._calls.retried(self._calls.brokers):
            while True:
                if not await self._described(broker_id, request):
                    break
                await asyncio.sleep(_PAUSE_S)

    async def _alter(self, request: AlterUserScramCredentialsRequest, what: str) -> None:
        def read(answer: AlterUserScramCredentialsResponse) -> None:
            for result in answer.results:
                check(result.error_code, what, result.error_message)

        await self._calls.ask_controller(request, AlterUserScramCredentialsResponse, read)


_LONGEST = -1


@dataclass(frozen=True, slots=True)
class TokenDescription:
    """A token and its secret; `repr` leaves the secret out."""

    token: DelegationToken
    hmac: bytes = field(repr=False)

    @property
    def password(self) -> str:
        """Return the password for SCRAM logins as the user `token.id`, with `tokenauth=true`."""
        return token_password(self.hmac)


@checks_calls()
class Tokens:
    """`admin.tokens`; the client must have logged in, and not with a token."""

    def __init__(self, calls: Calls) -> None:
        self._calls = calls

    async def create(
        self,
        owner: Principal | None = None,
        renewers: Iterable[Principal] = (),
        lifetime_ms: int = _LONGEST,
    ) -> TokenDescription:
        """Create a token; the `owner` defaults to this client's user. Raises OttlaError.

        Another owner needs CREATE_TOKENS on that user. The lifetime is limited by the cluster.
        """
        members = tuple(renewers)
        answer = await self._calls.cluster.ask(
            await self._calls.cluster.controller(),
            CreateDelegationTokenRequest(
                owner_principal_type=None if owner is None else owner.type,
                owner_principal_name=None if owner is None else owner.name,
                renewers=[
                    TokenPrincipal(principal_type=one.type, principal_name=one.name)
                    for one in members
                ],
                max_lifetime_ms=lifetime_ms,
            ),
            CreateDelegationTokenResponse,
        )
        check(answer.error_code, "make a delegation token")
        holder = Principal(answer.principal_type, answer.principal_name)
        requester = Principal(
            answer.token_requester_principal_type, answer.token_requester_principal_name
        )
        token = DelegationToken(
            answer.token_id,
            holder,
            requester if requester.name else holder,
            members,
            answer.issue_timestamp_ms,
            answer.max_timestamp_ms,
            answer.expiry_timestamp_ms,
        )
        return TokenDescription(token, bytes(answer.hmac))

    async def find(self, owners: Iterable[Principal] | None = None) -> list[TokenDescription]:
        """Return the tokens that this client may see.

        With `owners`, only the tokens that these principals own.
        """
        request = DescribeDelegationTokenRequest(
            owners=None
            if owners is None
            else [
                TokenPrincipal(principal_type=one.type, principal_name=one.name) for one in owners
            ]
        )

        def read(answer: DescribeDelegationTokenResponse) -> list[TokenDescription]:
            check(answer.error_code, "describe delegation tokens")
            found: list[TokenDescription] = []
            for one in answer.tokens:
                owner = Principal(one.principal_type, one.principal_name)
                requester = Principal(
                    one.token_requester_principal_type, one.token_requester_principal_name
                )
                token = DelegationToken(
                    one.token_id,
                    owner,
                    requester if requester.name else owner,
                    tuple(
                        Principal(each.principal_type, each.principal_name) for each in one.renewers
                    ),
                    one.issue_timestamp,
                    one.max_timestamp,
                    one.expiry_timestamp,
                )
                found.append(TokenDescription(token, bytes(one.hmac)))
            return found

        return await self._calls.ask_controller(request, DescribeDelegationTokenResponse, read)

    async def find_one(self, token_id: str) -> TokenDescription:
        """Return the token with that id. Raises OttlaError."""
        for one in await self.find():
            if one.token.id == token_id:
                return one
        raise refused(
            ErrorCode.DELEGATION_TOKEN_NOT_FOUND,
            f"find delegation token {token_id}",
            "there is none that this user may see",
        )

    async def renew(self, hmac: bytes, period_ms: int = _LONGEST) -> int:
        """Make a token valid for a period from now on; return its expiry time.

        Raises OttlaError.
        """
        request = RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms)

        def read(answer: RenewDelegationTokenResponse) -> int:
            check(answer.error_code, "renew a delegation token")
            return answer.expiry_timestamp_ms

        return await self._calls.ask_controller(request, RenewDelegationTokenResponse, read)

    async def expire(self, hmac: bytes, period_ms: int = _LONGEST) -> int:
        """Expire a token after a period; a negative period removes it at once."""
        request = ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms)
        answer = await self._calls.cluster.ask(
            await self._calls.cluster.controller(), request, ExpireDelegationTokenResponse
        )
        check(answer.error_code, "end a delegation token")
        return answer.expiry_timestamp_ms
