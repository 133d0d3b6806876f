"""The laws of `FileStore`, which hold in every kind of storage."""

import os
import pickle
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ottla.base.errors import OttlaError
from ottla.lake.store.store import FileStore
from ottla.lake.store.targets import open_store

WRITERS = 50
ROUNDS = 5
BIG_BYTES = 21 << 20  # More than two parts of a multipart upload.


def race(writers: list[Callable[[], Any]]) -> list[Any]:
    """Run them at the same moment; return what each gives."""
    barrier = threading.Barrier(len(writers))

    def one(writer: Callable[[], Any]) -> Any:
        barrier.wait()
        return writer()

    with ThreadPoolExecutor(len(writers)) as pool:
        return list(pool.map(one, writers))


def test_one_of_many_writers_gets_the_name(store: FileStore) -> None:
    """Fifty threads at once, several times: one True, and its content is there."""
    for turn in range(ROUNDS):
        path = f"small/{turn:020d}.json"
        put = partial(store.put_if_absent, path)
        won = race([partial(put, b"writer %d" % number) for number in range(WRITERS)])
        assert won.count(True) == 1
        assert store.read(path) == b"writer %d" % won.index(True)
    assert len(store.names("small/")) == turn + 1


RACER = """
import sys
from ottla.lake.store.targets import open_store
store = open_store(sys.argv[1])
print("ready", flush=True)
sys.stdin.readline()
won = [store.put_if_absent(f"small/{n:020d}.json", sys.argv[2].encode()) for n in range(20)]
print("".join("1" if one else "0" for one in won))
"""


def test_processes_share_out_the_names(store: FileStore) -> None:
    """As drivers on several machines: each name goes to one of them."""
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", RACER, store.url, str(number)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for number in range(3)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    won = [racer.communicate(timeout=120)[0].strip() for racer in racers]
    for turn in range(20):
        winners = [number for number in range(3) if won[number][turn] == "1"]
        assert [store.read(f"small/{turn:020d}.json")] == [b"%d" % one for one in winners]


KILLED = """
import os, signal, sys, threading
from ottla.lake.store.targets import open_store
store = open_store(sys.argv[1])
threading.Timer(float(sys.argv[2]), os.kill, (os.getpid(), signal.SIGKILL)).start()
for number in range(1000000):
    store.put_if_absent(f"small/{number:020d}.json", b"x" * 5000)
    store.replace("small/head", b"%020d" % number)
"""


@pytest.mark.parametrize("after_s", [0.05, 0.23])
def test_a_killed_writer_leaves_whole_files_only(store: FileStore, after_s: float) -> None:
    """kill -9 at any moment: every name has its whole content, and the next writer goes on."""
    done = subprocess.run([sys.executable, "-c", KILLED, store.url, str(after_s)], check=False)
    assert done.returncode == -signal.SIGKILL
    names = sorted(name for name in store.names("small/") if name.endswith(".json"))
    assert names == [f"{number:020d}.json" for number in range(len(names))]
    for name in names:
        assert store.read(f"small/{name}") == b"x" * 5000
    assert store.put_if_absent(f"small/{len(names):020d}.json", b"next")


def test_a_name_is_taken_once(store: FileStore) -> None:
    assert store.put_if_absent("small/1", b"first")
    assert not store.put_if_absent("small/1", b"second")
    assert store.read("small/1") == b"first"


def test_the_same_content_is_the_same_writer(store: FileStore) -> None:
    """Its first try may have been done without an answer."""
    assert store.put_if_absent("small/1", b"mine")
    assert store.put_if_absent("small/1", b"mine")


def test_replaced_file_is_the_new_one(store: FileStore) -> None:
    store.replace("heads/1", b"old")
    store.replace("heads/1", b"new, and longer")
    assert store.read("heads/1") == b"new, and longer"
    assert store.names("heads/") == ["1"]


def test_what_is_written_is_listed_at_once(store: FileStore) -> None:
    for number in range(30):
        store.replace(f"small/{number:03d}", b"%d" % number)
        assert len(store.names("small/")) == number + 1
    assert sorted(store.names("small/", after="026")) == ["027", "028", "029"]
    assert sorted(store.names("small/", after="0265")) == ["027", "028", "029"]
    found = {file.path: file.size_bytes for file in store.files("small/")}
    assert found == {f"small/{number:03d}": len(str(number)) for number in range(30)}
    store.remove("small/000")
    assert "000" not in store.names("small/")


def test_a_listing_has_every_page(store: FileStore) -> None:
    """S3 gives a thousand names at a time."""
    names = [f"{number:04d}" for number in range(1005)]
    with ThreadPoolExecutor(16) as pool:
        list(pool.map(lambda name: store.create(f"data/{name}").finish(), names))
    assert sorted(store.names("data/")) == names
    assert len(list(store.files("data/"))) == 1005
    assert store.names("data/", after="1003") == ["1004"]


def test_absent_files_and_folders(store: FileStore) -> None:
    for ask in (store.read, store.size, store.open):
        with pytest.raises(FileNotFoundError):
            ask("small/none")
    assert store.names("none/") == []
    assert list(store.files("none/")) == []
    store.remove("small/none")


def test_a_root_that_was_never_made_is_empty(target: str) -> None:
    assert open_store(target).top() == []


def test_names_at_the_root(store: FileStore) -> None:
    store.replace("small/x", b"x")
    store.replace("loose", b"x")
    assert {"loose", "small"} <= set(store.top())


@pytest.mark.parametrize(
    "name", ["a b", "ü", "100%", "a%20b", "a+b", "a&b=c", "x=y", "#1", "?q", "~t", "[*]", "'q'"]
)
def test_odd_names(store: FileStore, name: str) -> None:
    """Written, read, listed and removed under the very name."""
    assert store.put_if_absent(f"small/{name}", b"x")
    assert not store.put_if_absent(f"small/{name}", b"y")
    writer = store.create(f"data/{name}")
    writer.write(b"data")
    writer.finish()
    assert store.names("small/") == [name]
    assert [file.path for file in store.files("data/")] == [f"data/{name}"]
    assert (store.read(f"small/{name}"), store.size(f"data/{name}")) == (b"x", 4)
    store.remove(f"small/{name}")
    assert store.names("small/") == []


@pytest.mark.parametrize("root", ["a b", "ü", "100%", "a%20b", "x+y"])
def test_odd_roots(target: str, root: str) -> None:
    """A path is taken as it is; in a URL a character may be escaped."""
    from urllib.parse import quote

    is_url = "://" in target
    store = open_store(f"{target}/{quote(root) if is_url else root}")
    store.prepare(["small/"])
    assert store.put_if_absent("small/x", b"x")
    assert open_store(target).top() == [root]
    assert open_store(store.url).read("small/x") == b"x"


def test_a_big_file_in_parts(store: FileStore) -> None:
    """Parquet is written and read through it; any part of it can be had."""
    numbers = np.random.default_rng(1).integers(0, 1 << 62, BIG_BYTES // 8)
    writer = store.create("data/big.parquet")
    with pq.ParquetWriter(writer, pa.schema([("n", pa.int64())]), compression="none") as parquet:
        for piece in np.array_split(numbers, 6):
            parquet.write_table(pa.table({"n": piece}))
    size = writer.tell()
    writer.finish()
    assert store.size("data/big.parquet") == size > 20 << 20
    with store.open("data/big.parquet") as content, pq.ParquetFile(content) as file:
        assert file.metadata.num_row_groups == 6
        assert np.array_equal(file.read().column("n").to_numpy(), numbers)
    content = store.read("data/big.parquet")
    with store.open("data/big.parquet") as part:
        part.seek(9 << 20)
        assert part.read(1000) == content[9 << 20 :][:1000]
        part.seek(-8, os.SEEK_END)
        assert (part.read(), part.tell(), part.read(1)) == (content[-8:], size, b"")


@pytest.mark.parametrize("size", [0, 100, 21 << 20])
def test_discarded_file_leaves_nothing(store: FileStore, size: int) -> None:
    writer = store.create("data/x")
    if size:
        writer.write(bytes(size))
    writer.discard()
    assert store.names("data/") == []
    with pytest.raises(FileNotFoundError):
        store.size("data/x")


def test_empty_file(store: FileStore) -> None:
    store.create("data/empty").finish()
    assert store.size("data/empty") == 0
    assert store.read("data/empty") == b""


def test_pickled_store_reads_the_same_files(store: FileStore) -> None:
    """As on an executor."""
    store.replace("small/x", b"x")
    assert pickle.loads(pickle.dumps(store)).read("small/x") == b"x"


def test_held_marker_counts_until_it_is_left(store: FileStore) -> None:
    other = open_store(store.url)
    assert not other.is_held("running/a")
    with store.hold("running/a"):
        assert other.is_held("running/a")
        assert not other.is_held("running/b")
    assert not other.is_held("running/a")
    assert other.names("running/") == []


def test_address_is_what_another_program_opens(store: FileStore) -> None:
    assert store.address("data/x") == f"{store.url}/data/x"


def test_errors_say_what_to_do(target: str) -> None:
    if "://" in target:
        with pytest.raises(OttlaError, match=r"option|can't be opened"):
            open_store(target, {"nonsense": "1"}).prepare(["small/"])
    else:
        with pytest.raises(OttlaError, match="takes no store option"):
            open_store(target, {"nonsense": "1"})
