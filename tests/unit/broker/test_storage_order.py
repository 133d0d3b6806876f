"""Log directories in another order than that in which the store was made."""

import asyncio
from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.process.storage import configured_store
from ottla.storage.disk.filesystem import OsFileSystem


async def _open(*folders: Path) -> None:
    settings = BrokerSettings({"log.dirs": ",".join(map(str, folders))})
    await (await configured_store(settings, OsFileSystem())).close()


def test_another_order_is_refused_and_names_the_directory_of_the_store(tmp_path: Path) -> None:
    """Else an empty store would begin, in which no topic exists."""
    one, other = tmp_path / "one", tmp_path / "other"
    other.mkdir()
    asyncio.run(_open(one, other))
    with pytest.raises(OttlaError, match=f"name {one} first") as raised:
        asyncio.run(_open(other, one))
    assert raised.value.code is ErrorCode.INVALID_CONFIG
    assert not list(other.iterdir())
    asyncio.run(_open(one, other))
