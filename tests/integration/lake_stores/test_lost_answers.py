"""A request is done and its answer lost, or it is lost itself: nothing is done twice."""

import itertools
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from rig.lossy_proxy import LossyProxy, lossy_proxy
from rig.s3 import S3Server

from ottla.lake.store.store import FileStore, PutUnknown, StoreUnreachable
from ottla.lake.store.targets import open_store
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import existing_table, open_table
from ottla.lake.tables.own import OwnTable
from ottla.lake.tables.table import CommitConflict
from tests.integration.lake_stores.servers import BUCKET
from tests.unit.lake.tables import commit, written

_numbers = itertools.count(1)
NAME = "small/00000000000000000001.json"


@pytest.fixture
def behind_proxy(s3_server: S3Server) -> Iterator[tuple[FileStore, LossyProxy]]:
    """A store behind a proxy."""
    root = f"lossy-{next(_numbers)}"
    with lossy_proxy(urlsplit(s3_server.endpoint).netloc) as proxy:
        store = open_store(f"s3://{BUCKET}/{root}", {"aws_endpoint": proxy.endpoint})
        store.prepare(["small/", "data/"])
        yield store, proxy


def deciding(method: str, path: str) -> bool:
    """The request that takes the name: S3's conditional PUT."""
    return method == "PUT" and (NAME in path or "/manifests/" in path)


@pytest.mark.parametrize("count", [1, 2, 100])
def test_a_put_that_was_done_is_known_to_be_ours(
    behind_proxy: tuple[FileStore, LossyProxy], count: int
) -> None:
    """Whatever is lost, as long as the file can be read back; the library's own tries as well."""
    store, proxy = behind_proxy
    proxy.lose(deciding, count)
    assert store.put_if_absent(NAME, b"mine")
    assert proxy.lost
    assert store.read(NAME) == b"mine"


def test_a_put_that_never_arrived_is_done_again(
    behind_proxy: tuple[FileStore, LossyProxy],
) -> None:
    store, proxy = behind_proxy
    proxy.lose(deciding, 2, forward=False)
    assert store.put_if_absent(NAME, b"mine")
    assert proxy.lost
    assert store.read(NAME) == b"mine"


def test_a_put_that_lost_a_race_and_its_answer_has_lost(
    behind_proxy: tuple[FileStore, LossyProxy],
) -> None:
    """The name is another's: its content says so."""
    store, proxy = behind_proxy
    assert store.put_if_absent(NAME, b"others")
    proxy.lose(deciding, 2)
    assert not store.put_if_absent(NAME, b"mine")
    assert proxy.lost
    assert store.read(NAME) == b"others"


def test_where_nothing_is_answered_it_is_not_known(
    behind_proxy: tuple[FileStore, LossyProxy],
) -> None:
    """Not lost and not won; once the store answers, the same content finds its place."""
    store, proxy = behind_proxy
    proxy.lose(lambda _method, _path: True, 1_000_000)
    with pytest.raises(PutUnknown, match=r"not known whether .* was written"):
        store.put_if_absent(NAME, b"mine")
    proxy.lose(lambda _method, _path: False, 0)
    assert store.put_if_absent(NAME, b"mine")
    assert store.read(NAME) == b"mine"


def test_a_commit_whose_answer_is_lost_counts_once(
    behind_proxy: tuple[FileStore, LossyProxy],
) -> None:
    """As a table sees it: the load has committed, and the next one builds on it."""
    store, proxy = behind_proxy
    table = OwnTable(open_store(f"{store.url}/table", getattr(store, "options", {}))).writable()
    commit(table, 5)
    proxy.lose(deciding, 1)
    commit(table, 5)
    assert proxy.lost
    newest, _ = table.latest()
    assert newest is not None
    assert (newest.version, newest.total_rows) == (2, 20)


def test_a_commit_that_lost_and_got_no_answer_says_so(
    behind_proxy: tuple[FileStore, LossyProxy],
) -> None:
    store, proxy = behind_proxy
    options = getattr(store, "options", {})
    table = OwnTable(open_store(f"{store.url}/table", options)).writable()
    late = written(table, 5, "d" * 32)
    commit(open_table(f"{store.url}/table", options=options), 5)
    proxy.lose(deciding, 1)
    with pytest.raises(CommitConflict):
        table.commit(late)
    assert proxy.lost


def test_a_file_whose_last_answer_is_lost_is_there(
    behind_proxy: tuple[FileStore, LossyProxy],
) -> None:
    """Of one part and of several."""
    store, proxy = behind_proxy
    for size in (100, 20 << 20):
        writer = store.create(f"data/{size}")
        writer.write(bytes(size))
        proxy.lose(lambda method, path: method in ("PUT", "POST"), 1)
        writer.finish()
        assert store.size(f"data/{size}") == size


@pytest.mark.parametrize("kind", ["parquet", "delta"])
def test_a_store_that_vanishes_is_not_called_damage(s3_server: S3Server, kind: Format) -> None:
    """At any request of a look at the table: it is not known how the table is, and that is said."""
    target = f"s3://{BUCKET}/vanishing-{next(_numbers)}"
    here = {"aws_endpoint": s3_server.endpoint}
    for _ in range(2):
        commit(open_table(target, kind, here), 5)
    with lossy_proxy(urlsplit(s3_server.endpoint).netloc) as proxy:
        answered = itertools.count()
        # The last requests of a look are for manifests, or for the log of the format.
        proxy.lose(lambda _method, _path: next(answered) < 0)
        there = {"aws_endpoint": proxy.endpoint}
        assert existing_table(target, there).latest()[0]
        requests = next(answered)
        for last in (requests - 1, requests - 2):
            left = iter(range(last))
            proxy.lose(lambda _m, _p, left=left: next(left, None) is None, 10_000, forward=False)
            with pytest.raises(StoreUnreachable):
                existing_table(target, there).latest()
