"""How errors of share state are told to members."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.broker.share.served import as_fetched

# What share consumers go on from when it comes with a partition they fetch; others they report.
BEARABLE = (ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


@pytest.mark.parametrize("code", [each for each in ErrorCode if each is not ErrorCode.NONE])
def test_who_fetches_is_told_nothing_that_ends_its_program(code: ErrorCode) -> None:
    """Share state may be away for a while, as when the brokers that hold it died."""
    assert as_fetched(code) in BEARABLE
