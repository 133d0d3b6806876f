"""A conditional PUT is tried until it is known who has the name. Pure: a store of three values."""

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.retries import put_until_known
from ottla.lake.store.store import PutUnknown, StoreUnreachable

LOST = StoreUnreachable(ErrorCode.KAFKA_STORAGE_ERROR, "no answer")
REFUSED = OttlaError(ErrorCode.KAFKA_STORAGE_ERROR, "refused")


class Scripted:
    """Gives what the script says to each PUT and each read, in order."""

    def __init__(self, puts: list[bool | Exception], reads: list[bytes | Exception]) -> None:
        self.puts = puts
        self.reads = reads

    def run(self) -> bool:
        return put_until_known("s3://b/x", b"mine", self._put, self._read)

    def _put(self) -> bool:
        given = self.puts.pop(0)
        if isinstance(given, Exception):
            raise given
        return given

    def _read(self) -> bytes:
        given = self.reads.pop(0)
        if isinstance(given, Exception):
            raise given
        return given


@pytest.mark.parametrize(
    ("puts", "reads", "won"),
    [
        ([True], [], True),
        ([False], [b"others"], False),
        ([False], [b"mine"], True),
        ([LOST], [b"mine"], True),
        ([LOST], [b"others"], False),
        ([LOST, True], [FileNotFoundError()], True),
        ([LOST, False], [FileNotFoundError(), b"mine"], True),
        ([LOST, False], [LOST, b"others"], False),
        ([False, True], [FileNotFoundError()], True),
        ([LOST, REFUSED], [FileNotFoundError(), b"mine"], True),
    ],
)
def test_who_has_the_name(
    puts: list[bool | Exception], reads: list[bytes | Exception], won: bool
) -> None:
    """By the answer, else by the content; an absent file is written again."""
    script = Scripted(puts, reads)
    assert script.run() is won
    assert (script.puts, script.reads) == ([], [])


def test_a_refusal_is_no_doubt() -> None:
    """The store has said that nothing was done."""
    with pytest.raises(OttlaError, match="refused"):
        Scripted([REFUSED], []).run()


@pytest.mark.parametrize(
    ("puts", "reads"),
    [
        ([LOST, LOST, LOST], [LOST, LOST, LOST]),
        ([LOST, LOST, LOST], [FileNotFoundError(), FileNotFoundError(), FileNotFoundError()]),
        ([LOST, REFUSED, REFUSED], [LOST, REFUSED, REFUSED]),
    ],
)
def test_doubt_is_said(puts: list[bool | Exception], reads: list[bytes | Exception]) -> None:
    """A request that was lost may arrive later."""
    with pytest.raises(PutUnknown, match=r"not known whether s3://b/x was written"):
        Scripted(puts, reads).run()
