"""Fixtures: one server of each kind of storage for a whole run."""

from collections.abc import Iterator

import pytest
from rig import s3 as rig_s3
from rig.s3 import S3Server, s3

BUCKET = "lake"


@pytest.fixture(scope="session")
def s3_server() -> Iterator[S3Server]:
    """A server; its credentials are in the environment of this process and its children."""
    reason = rig_s3.available()
    if reason is not None:
        pytest.skip(reason)
    with s3(BUCKET) as server, pytest.MonkeyPatch.context() as environment:
        for name, value in server.environment().items():
            environment.setenv(name, value)
        yield server
