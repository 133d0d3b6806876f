"""The setting `coordination.connect` names a store, or is refused with what to write."""

import asyncio
import sys

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.coordination.connect import connect
from ottla.coordination.interface.store import StoreUnavailable
from ottla.coordination.memory.memory import MemoryStore


def test_a_sqlite_address_makes_the_file_and_its_folder(tmp_path):
    """Three slashes: an absolute path."""

    async def main():
        store = await connect(f"sqlite://{tmp_path}/deep/er/store.db")
        await store.close()

    asyncio.run(main())
    assert (tmp_path / "deep" / "er" / "store.db").exists()


def test_a_memory_address_is_a_store_of_its_own():
    """For trying things out."""
    assert isinstance(asyncio.run(connect("memory:")), MemoryStore)


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    """With the system's reason."""
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match=r"folder .*/file/sub cannot be made"):
        asyncio.run(connect(f"sqlite://{tmp_path}/file/sub/store.db"))


@pytest.mark.parametrize(
    "address", ["", "localhost:2181", "sqlite://relative/path", "zookeeper:///path", "etcd://a:1"]
)
def test_an_address_of_no_kind_is_refused(address):
    """The answer says what could be written."""
    with pytest.raises(OttlaError, match="names no store: write sqlite:///") as raised:
        asyncio.run(connect(address))
    assert raised.value.code is ErrorCode.INVALID_CONFIG


def test_without_kazoo_the_extra_to_install_is_named(monkeypatch):
    """It is not among what a single broker needs."""
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    for name in [name for name in sys.modules if name.startswith("ottla.coordination.zookeeper")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(OttlaError, match=r"install `ottla\[zookeeper\]`"):
        asyncio.run(connect("zookeeper://127.0.0.1:1/x"))
