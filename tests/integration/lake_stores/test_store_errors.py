"""What a storage refuses is one sentence with cause and remedy, and shows no secret."""

import itertools
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from rig.lossy_proxy import lossy_proxy
from rig.probe import free_port
from rig.s3 import SECRET, S3Server, s3

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.store.targets import open_store
from ottla.lake.tables.opening import open_table
from tests.integration.lake_stores.servers import BUCKET

_numbers = itertools.count(1)


@pytest.fixture
def target(s3_server: S3Server) -> Iterator[str]:
    del s3_server
    return f"s3://{BUCKET}/errors-{next(_numbers)}"


def refusal(target: str, options: dict[str, str] | None = None) -> str:
    with pytest.raises(OttlaError) as refused:
        open_table(target, options=options)
    message = refused.value.message
    assert SECRET not in message
    assert "\n" not in message
    assert len(message) < 600
    return message


def test_missing_bucket(s3_server: S3Server) -> None:
    del s3_server
    assert "there is no bucket nowhere; make it" in refusal("s3://nowhere/table")
    with pytest.raises(OttlaError, match="there is no bucket nowhere"):
        ottla.lake.verify("s3://nowhere/table", bootstrap=None)


def test_wrong_credentials(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another")
    said = refusal(target)
    assert "refuses access (SignatureDoesNotMatch" in said
    assert "credentials come from the environment" in said
    assert "another" not in said


def test_unknown_user(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "stranger")
    assert "refuses access" in refusal(target)


def test_endpoint_where_nothing_listens(target: str) -> None:
    options = {"aws_endpoint": f"http://127.0.0.1:{free_port()}"}
    assert "see that the store runs and can be reached" in refusal(target, options)


def test_option_that_does_not_exist(target: str) -> None:
    assert "aws_nonsense" in refusal(target, {"aws_nonsense": "1"})


def test_store_that_ignores_conditions_is_refused(target: str) -> None:
    """Its PUT overwrites: two loads would both believe that they have committed."""
    with (
        s3(BUCKET, signed=False) as server,
        lossy_proxy(urlsplit(server.endpoint).netloc, without=("if-none-match",)) as proxy,
    ):
        options = {"aws_endpoint": proxy.endpoint}
        said = refusal(target, options)
        assert open_store(target, options).top() == []
    assert "its store gave a taken name away again" in said
    assert "choose a store that checks them" in said


def test_discarded_upload_leaves_no_parts(target: str, s3_server: S3Server) -> None:
    """An upload that was begun costs space, and no listing shows it."""
    store = open_store(target)

    def stored() -> set[Path]:
        return {path for path in Path(s3_server.folder, "data").rglob("*") if path.is_file()}

    before = stored()
    for size in (100, 30 << 20):
        writer = store.create("data/x")
        writer.write(bytes(size))
        assert size == 100 or stored() > before
        writer.discard()
    assert stored() == before
    assert store.top() == []


def test_files_of_others_in_a_bucket(target: str) -> None:
    open_store(target).replace("letters.txt", b"x")
    assert "holds other files (letters.txt) and no table of ottla" in refusal(target)
    open_store(f"{target}/delta").replace("_delta_log/0.json", b"x")
    assert "holds a Delta table" in refusal(f"{target}/delta")


def test_no_table_in_a_bucket(target: str) -> None:
    with pytest.raises(OttlaError, match="holds no table of ottla"):
        ottla.lake.files(target)
