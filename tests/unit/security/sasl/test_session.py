"""The order of requests on a connection that must log in."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.principal import Principal
from ottla.security.sasl.failures import FailedLogins
from ottla.security.sasl.session import LoginState, LoginStep, SaslSession, session_lifetime_ms
from ottla.wire.api import ApiKey

ALICE, BOB = Principal("User", "alice"), Principal("User", "bob")
VERSIONS, HANDSHAKE, TOKEN = (
    ApiKey.API_VERSIONS,
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
)


def open_session(lifetime_ms=None, mechanism="PLAIN"):
    session = SaslSession()
    assert session.agreed(mechanism, is_raw=False, now_ms=0)
    session.judging()
    assert session.logged_in(ALICE, lifetime_ms, 0)
    return session


def test_a_login_goes_by_versions_handshake_and_tokens() -> None:
    """Each request in its turn; afterwards all are served."""
    session = SaslSession()
    assert session.judge(VERSIONS, 0) is LoginStep.VERSIONS
    session.versions_served()
    assert session.judge(HANDSHAKE, 0) is LoginStep.HANDSHAKE
    assert session.agreed("PLAIN", is_raw=False, now_ms=0)
    assert session.judge(TOKEN, 0) is LoginStep.TOKEN
    session.judging()
    assert session.judge(TOKEN, 0) is LoginStep.WAIT
    session.went_on()
    assert session.judge(TOKEN, 0) is LoginStep.TOKEN
    session.judging()
    assert session.logged_in(ALICE, None, 0)
    assert session.judge(ApiKey.PRODUCE, 10**9) is LoginStep.SERVE


def test_without_a_header_every_frame_is_a_token() -> None:
    """SaslHandshake version 0: what a token begins with is no API key."""
    session = SaslSession()
    assert session.agreed("PLAIN", is_raw=True, now_ms=0)
    assert session.takes_raw_tokens
    assert session.judge(ApiKey.PRODUCE, 0) is LoginStep.TOKEN


@pytest.mark.parametrize("api_key", [each for each in ApiKey if each not in (VERSIONS, HANDSHAKE)])
def test_nothing_else_is_served_first(api_key) -> None:
    """Not even the token, before a mechanism is agreed on."""
    assert SaslSession().judge(api_key, 0) is LoginStep.CLOSE


class Client:
    """Sends requests of any kind and plays the broker's part of the outcome."""

    def __init__(self) -> None:
        self.session = SaslSession()
        self.knows_password = False

    def send(self, api_key: int, now_ms: int, outcome: int) -> LoginStep:
        session = self.session
        verdict = session.judge(api_key, now_ms)
        if verdict is LoginStep.VERSIONS:
            session.versions_served()
        elif verdict is LoginStep.HANDSHAKE:
            if not session.agreed(
                ("PLAIN", "SCRAM")[outcome % 2], is_raw=bool(outcome & 2), now_ms=0
            ):
                session.failed()
        elif verdict is LoginStep.TOKEN:
            session.judging()
            if outcome == 0:
                session.failed()
            elif outcome == 1:
                session.went_on()
        elif verdict in (LoginStep.CLOSE, LoginStep.ILLEGAL):
            session.failed()
        return verdict


@given(
    st.lists(
        st.tuples(
            st.one_of(st.sampled_from([VERSIONS, HANDSHAKE, TOKEN]), st.integers(-1, 200)),
            st.integers(0, 3),
        ),
        max_size=30,
    )
)
def test_no_sequence_of_requests_is_served_before_login(requests) -> None:
    """Whatever comes in whatever order, while no token is the right one."""
    client = Client()
    for number, (api_key, outcome) in enumerate(requests):
        assert client.send(api_key, number, outcome) is not LoginStep.SERVE
        assert client.session.principal is None


@given(
    st.lists(
        st.tuples(
            st.sampled_from(list(ApiKey)), st.integers(0, 5_000), st.sampled_from([ALICE, BOB])
        ),
        max_size=30,
    )
)
def test_a_session_that_is_over_serves_nothing(requests) -> None:
    """Whoever logs in again, only the first principal gets a new session."""
    session = open_session(lifetime_ms=10_000)
    now_ms = 0
    for api_key, pause_ms, who in requests:
        now_ms += pause_ms
        verdict = session.judge(api_key, now_ms)
        if verdict is LoginStep.SERVE:
            assert session.expires_ms is not None
            assert now_ms < session.expires_ms
        elif verdict is LoginStep.HANDSHAKE:
            assert session.agreed("PLAIN", is_raw=False, now_ms=now_ms)
        elif verdict is LoginStep.TOKEN:
            session.judging()
            assert session.logged_in(who, 10_000, now_ms) is (who == ALICE)
        else:
            session.failed()
        assert session.principal == ALICE


def test_login_again_needs_an_end_of_the_session_and_a_second_in_between() -> None:
    """Else the handshake goes to its handler, which refuses it, as in Kafka."""
    assert open_session().judge(HANDSHAKE, 5) is LoginStep.SERVE
    session = open_session(lifetime_ms=60_000)
    assert session.judge(HANDSHAKE, 5) is LoginStep.HANDSHAKE
    assert session.agreed("PLAIN", is_raw=False, now_ms=5)
    assert session.judge(ApiKey.FETCH, 6) is LoginStep.CLOSE
    session.judging()
    assert session.logged_in(ALICE, 60_000, 7)
    assert session.expires_ms == 60_007
    assert session.judge(HANDSHAKE, 1004) is LoginStep.SERVE
    assert session.judge(HANDSHAKE, 1005) is LoginStep.HANDSHAKE


def test_login_again_is_by_the_same_mechanism_and_principal() -> None:
    """Another one fails; nothing is served afterwards."""
    session = open_session(lifetime_ms=60_000)
    assert not session.agreed("SCRAM-SHA-256", is_raw=False, now_ms=5)
    session = open_session(lifetime_ms=60_000)
    assert session.agreed("PLAIN", is_raw=False, now_ms=5)
    session.judging()
    assert not session.logged_in(BOB, 60_000, 6)
    assert session.state is LoginState.FAILED
    assert session.judge(ApiKey.FETCH, 7) is LoginStep.CLOSE


def test_other_requests_where_a_token_is_due_are_an_illegal_state() -> None:
    """Those that Kafka answers; the others end the connection."""
    session = SaslSession()
    assert session.agreed("PLAIN", is_raw=False, now_ms=0)
    assert session.judge(HANDSHAKE, 0) is LoginStep.ILLEGAL
    assert session.judge(VERSIONS, 0) is LoginStep.ILLEGAL
    assert session.judge(ApiKey.METADATA, 0) is LoginStep.CLOSE


@pytest.mark.parametrize(
    ("credential_ms", "reauth_ms_max", "lifetime_ms"),
    [
        (None, 0, None),
        (None, 5, 5),
        (7, 0, 7),
        (7, 5, 5),
        (3, 5, 3),
        (-1, 0, 0),
    ],
)
def test_a_session_ends_with_its_credential_or_before(
    credential_ms, reauth_ms_max, lifetime_ms
) -> None:
    """The sooner of both; a credential that is over gives no time at all."""
    assert session_lifetime_ms(credential_ms, reauth_ms_max) == lifetime_ms


def test_each_failure_of_a_user_is_answered_later_than_the_one_before() -> None:
    """Five within a second each, later up to five seconds; a minute makes up for it."""
    failures = FailedLogins(100)
    delays = [failures.failed("a", "bob", 0) for _ in range(8)]
    assert delays == [100, 100, 200, 400, 800, 1600, 3200, 5000]
    assert failures.failed("b", "bob", 0) == 100
    assert failures.failed("a", "bob", 60_000) == 5000
    assert failures.failed("a", "bob", 120_001) == 100
    assert failures.count == 11


def test_a_clients_reason_does_not_wait_for_another_users_mistakes() -> None:
    """Behind the same address; all addresses of an IPv6 network are one."""
    failures = FailedLogins(100)
    for _ in range(20):
        failures.failed("2001:db8::1", "bob", 0)
    assert failures.failed("2001:db8::1", "eve", 0) == 100
    assert failures.failed("2001:db8::2", "bob", 0) == 5000
    assert FailedLogins(0).failed("a", "", 0) == 0
