"""A root of its own for each test, in each kind of storage."""

import itertools
from pathlib import Path

import pytest

from ottla.lake.store.store import FileStore
from ottla.lake.store.targets import open_store
from tests.integration.lake_stores.servers import BUCKET, s3_server

__all__ = ["s3_server"]

_numbers = itertools.count(1)


@pytest.fixture(params=["local", "s3"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """A root that nothing is in yet, in each kind of storage."""
    match request.param:
        case "s3":
            request.getfixturevalue("s3_server")
            return f"s3://{BUCKET}/test-{next(_numbers)}"
        case _:
            return str(tmp_path / "root")


@pytest.fixture
def store(target: str) -> FileStore:
    """A store in which folders are made."""
    made = open_store(target)
    made.prepare(["small/", "data/"])
    return made
