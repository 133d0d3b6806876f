"""What DescribeLogDirs answers, as directories or as an error."""

import pytest

from ottla.base.errors import ErrorCode
from ottla.client.admin.logs import directories_in
from ottla.client.common.errors import BrokerRefused
from ottla.wire.codec import decode, encode
from ottla.wire.messages.log_dirs import DescribeLogDirsResponse, DescribeLogDirsResult


@pytest.mark.parametrize(
    ("version", "code"),
    [
        (1, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (2, ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        (3, ErrorCode.KAFKA_STORAGE_ERROR),
        (5, ErrorCode.KAFKA_STORAGE_ERROR),
    ],
)
def test_an_answer_without_directories_is_a_refusal(version: int, code: ErrorCode) -> None:
    """Up to version 2 nothing says which: it is read as Kafka's own client reads it."""
    refused = DescribeLogDirsResponse(error_code=ErrorCode.KAFKA_STORAGE_ERROR)
    answer = decode(DescribeLogDirsResponse, version, encode(refused, version))
    with pytest.raises(BrokerRefused) as caught:
        directories_in(answer, 1)
    assert caught.value.code == code


def test_a_failed_directory_is_no_refusal() -> None:
    """The error of one directory stands beside it."""
    failed = DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir="/one")
    (found,) = directories_in(DescribeLogDirsResponse(results=[failed]), 1)
    assert (found.path, found.error) == ("/one", ErrorCode.KAFKA_STORAGE_ERROR)
