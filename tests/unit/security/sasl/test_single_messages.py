"""PLAIN: a mechanism of one message."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.security.sasl.failing import AuthenticationFailed
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


@given(st.binary(max_size=100))
def test_no_bytes_do_more_than_fail(message: bytes) -> None:
    """Either they are read or they are refused."""
    with suppress(AuthenticationFailed):
        read_plain(message)
