"""PLAIN and OAUTHBEARER: mechanisms of one message."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.sasl.bearer import read_bearer, refusal_text, write_bearer
from ottla.security.sasl.failures import AuthenticationFailed
from ottla.security.sasl.plain import read_plain, write_plain


def test_a_login_is_read_as_it_was_written() -> None:
    """And is not shown with its password."""
    found = read_plain(write_plain("alice", "s3cret"))
    assert (found.user, found.password) == ("alice", "s3cret")
    assert "s3cret" not in repr(found)
    assert read_plain(b"alice\0alice\0s3cret").user == "alice"


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"alice",
        b"\0alice",
        b"\0alice\0",
        b"\0\0x",
        b"bob\0alice\0x",
        b"\0a\0b\0c",
        b"\0\xff\0x",
    ],
)
def test_a_message_that_is_no_login_is_refused(message: bytes) -> None:
    """To act as another user is one of them (CVE-2017-12610)."""
    with pytest.raises(AuthenticationFailed):
        read_plain(message)


def test_a_token_is_read_as_it_was_written() -> None:
    """With the extensions of KIP-342; it is not shown."""
    found = read_bearer(write_bearer("a.b.c", {"traceId": "1"}))
    assert found == ("a.b.c", "", {"traceId": "1"})
    assert "a.b.c" not in repr(found)
    assert read_bearer(b"n,a=al=2Cice,\x01auth=bearer  x=\x01\x01") == ("x=", "al,ice", {})


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic x\x01\x01",
        b"n,,\x01auth=Bearer \x01\x01",
        b"n,,\x01auth=Bearer x",
        b"n,,\x01auth=Bearer x\x01",
        b"n,a==,\x01auth=Bearer x\x01\x01",
        b"y,,\x01auth=Bearer x\x01\x01",
        b"n,,\x01auth=Bearer x\x01odd\x01\x01",
        b"n,,\x01auth=Bearer x\x01auth=Bearer y\x01\x01",
        b"n,,\x01auth=Bearer x\x01a=1\x01a=2\x01\x01",
        b"n,,\x01auth=Bearer \xff\x01\x01",
        b"n,,\x01auth=Bearer " + b"x" * 16_385 + b"\x01\x01",
        b"n,,\x01auth=Bearer x\x01a=" + b"x" * 20_480 + b"\x01\x01",
    ],
)
def test_a_message_without_a_token_is_refused(message: bytes) -> None:
    """Also one that is too long, or says a thing twice."""
    with pytest.raises(AuthenticationFailed):
        read_bearer(message)


def test_a_refusal_is_written_as_by_kafka() -> None:
    """In JSON without blanks."""
    assert refusal_text("invalid_token") == '{"status":"invalid_token"}'


@given(st.binary(max_size=100))
def test_no_bytes_do_more_than_fail(message: bytes) -> None:
    """Either they are read or they are refused."""
    for read in (read_plain, read_bearer):
        with suppress(AuthenticationFailed):
            read(message)
