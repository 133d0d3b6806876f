"""The rules for delegation tokens, in Kafka's order and with its codes."""

import base64

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.security.principal import Principal
from ottla.security.tokens import (
    DelegationToken,
    TokenRules,
    check_count,
    check_principals,
    ended,
    new_token_id,
    token_hmac,
    token_password,
)

ALICE, BOB, CAROL, DAVE = (Principal("User", name) for name in ("alice", "bob", "carol", "dave"))
RULES = TokenRules(lifetime_ms_max=1000, renewal_ms_max=100)
LONG_MAX = 9223372036854775807


def token(**changes: object) -> DelegationToken:
    """Of alice, made by bob, renewable by carol; good until 100, renewable until 1000."""
    made = RULES.made("id", ALICE, BOB, [CAROL], -1, 0)
    return made._replace(**changes)  # type: ignore[arg-type]


def code_of(call: object) -> ErrorCode:
    with pytest.raises(OttlaError) as raised:
        call()  # type: ignore[operator]
    return raised.value.code


@pytest.mark.parametrize(
    ("lifetime_ms", "max_ms", "expires_ms"),
    [(-1, 1500, 600), (0, 1500, 600), (50, 550, 550), (300, 800, 600), (5000, 1500, 600)],
)
def test_a_token_ends_by_the_settings_or_earlier(
    lifetime_ms: int, max_ms: int, expires_ms: int
) -> None:
    """A request can only shorten its life; 0 and less ask for the longest."""
    made = RULES.made("id", ALICE, ALICE, [], lifetime_ms, 500)
    assert (made.issued_ms, made.max_ms, made.expires_ms) == (500, max_ms, expires_ms)


def test_no_time_is_beyond_what_the_protocol_can_carry() -> None:
    """As in Kafka, sums end at the largest number."""
    made = TokenRules(LONG_MAX, LONG_MAX).made("id", ALICE, ALICE, [], -1, 500)
    assert (made.max_ms, made.expires_ms) == (LONG_MAX, LONG_MAX)
    later = ended(made, ALICE, LONG_MAX, 500)
    assert later is not None
    assert later.expires_ms == LONG_MAX


@pytest.mark.parametrize(
    ("period_ms", "now_ms", "expires_ms"),
    [(-1, 50, 150), (0, 50, 150), (20, 50, 70), (500, 50, 150)],
)
def test_a_renewal_counts_from_now(period_ms: int, now_ms: int, expires_ms: int) -> None:
    """It can also make a token end earlier."""
    assert RULES.renewed(token(), ALICE, period_ms, now_ms).expires_ms == expires_ms


def test_a_renewal_does_not_exceed_the_lifetime() -> None:
    """However often it is repeated."""
    assert RULES.renewed(token(expires_ms=990), ALICE, -1, 980).expires_ms == 1000


@pytest.mark.parametrize("principal", [ALICE, CAROL])
def test_owner_and_renewers_change_a_token(principal: Principal) -> None:
    """They renew it and end it."""
    assert RULES.renewed(token(), principal, -1, 0).expires_ms == 100
    assert ended(token(), principal, -1, 0) is None


@pytest.mark.parametrize("principal", [BOB, DAVE, Principal("Group", "alice")])
def test_others_do_not_change_a_token(principal: Principal) -> None:
    """Not even the one who made it."""
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert code_of(lambda: RULES.renewed(token(), principal, -1, 0)) == mismatch
    assert code_of(lambda: ended(token(), principal, -1, 0)) == mismatch


def test_a_token_is_good_until_its_end_and_not_after() -> None:
    """Its last millisecond counts."""
    assert [token().is_over(now_ms) for now_ms in (99, 100, 101)] == [False, False, True]
    assert token(max_ms=50).is_over(51)


def test_an_expired_token_is_not_renewed_but_can_be_removed() -> None:
    """Renewing finds that first, ending whose token it is."""
    over = ErrorCode.DELEGATION_TOKEN_EXPIRED
    assert code_of(lambda: RULES.renewed(token(), DAVE, -1, 101)) == over
    assert code_of(lambda: ended(token(), ALICE, 0, 101)) == over
    assert code_of(lambda: ended(token(), DAVE, 0, 101)) == (
        ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    )
    assert ended(token(), ALICE, -1, 101) is None


@pytest.mark.parametrize(("period_ms", "expires_ms"), [(0, 10), (40, 50), (500, 510), (5000, 1000)])
def test_a_token_ends_after_a_period(period_ms: int, expires_ms: int) -> None:
    """That may be later than before, within its lifetime."""
    found = ended(token(), ALICE, period_ms, 10)
    assert found is not None
    assert found.expires_ms == expires_ms


def test_a_token_concerns_owner_requester_and_renewers() -> None:
    """They see it without an ACL."""
    assert token().concerned == (ALICE, BOB, CAROL)


def test_the_secret_is_the_hmac_of_the_id_in_base64() -> None:
    """The value was computed with Java's HmacSHA512."""
    secret = token_hmac("ke\u00fd", "Yo2Q3Q_hT7S9ypfIZ2CyVA")
    assert token_password(secret) == (
        "YbP9jBnMGWAlp7tEVE1v7mUC+/4Vx7EjLrLXQ4h3D0N2jb+ZRM6Ek7OhM4ZXOtyU5KFhZuAd1gqV2DWPQuvKpA=="
    )
    assert base64.b64decode(token_password(secret)) == secret


def test_only_users_own_and_renew() -> None:
    """A login by a token is one of a user: another type would make another name of it."""
    check_principals(ALICE, [ALICE, BOB])
    for owner, renewer in (
        (ALICE, Principal("Group", "g")),
        (Principal("Group", "alice"), BOB),
        (Principal("User:team-x", "alice"), BOB),
        (Principal("", "alice"), BOB),
    ):
        assert code_of(lambda: check_principals(owner, [ALICE, renewer])) == (  # noqa: B023
            ErrorCode.INVALID_PRINCIPAL_TYPE
        )


def test_the_names_of_a_token_are_bounded() -> None:
    """16,384 characters, four more for each name; every broker keeps them."""
    check_principals(ALICE, [Principal("User", "x" * 16_371)])
    for renewers in ([Principal("User", "x" * 16_372)], [BOB] * 2400):
        assert code_of(lambda: check_principals(ALICE, renewers)) == (  # noqa: B023
            ErrorCode.INVALID_REQUEST
        )


def test_a_principal_makes_so_many_tokens() -> None:
    """10,000; those that others made do not count."""
    made = [token()] * 9999
    check_count([*made, token(requester=ALICE)], BOB)
    assert code_of(lambda: check_count([*made, token()], BOB)) == ErrorCode.POLICY_VIOLATION


def test_an_id_is_no_option_of_a_command() -> None:
    """22 characters that need no quotes, the first of them no hyphen."""
    drawn = iter([b"\xf8" + bytes(15), b"\xff" * 16])
    assert new_token_id(lambda _count: next(drawn)) == "_____________________w"
