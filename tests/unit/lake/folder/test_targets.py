"""What the words of a target mean: one folder of this machine, or an error."""

import re
from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.targets import folder_of, local_folder, open_store

HOME = Path("/home/ida")


@pytest.mark.parametrize(
    ("target", "folder"),
    [
        ("/lake/flights", "/lake/flights"),
        ("lake/flights", "lake/flights"),
        ("./s3:/flights", "s3:/flights"),
        ("/lake/a:b", "/lake/a:b"),
        ("/lake/a%20b", "/lake/a%20b"),
        ("~", "/home/ida"),
        ("~/flights", "/home/ida/flights"),
        ("~//flights", "/home/ida/flights"),
        ("lake/~", "lake/~"),
        ("file:/lake/flights", "/lake/flights"),
        ("file:///lake/flights", "/lake/flights"),
        ("FILE:///lake/flights", "/lake/flights"),
        ("file://localhost/lake/flights", "/lake/flights"),
        ("file:///lake/a%20b", "/lake/a b"),
        ("file:///lake/100%25", "/lake/100%"),
        ("file:///lake/caf%C3%A9", "/lake/café"),
    ],
)
def test_supported_targets(target: str, folder: str) -> None:
    """Only a URL is decoded; a path is taken as it is, but for `~` at its start."""
    assert local_folder(target, HOME) == Path(folder)


@pytest.mark.parametrize(
    "target",
    [
        "https://example.com/t",
        "ftp://host/t",
        "flights:2024",
        "c:/lake",
    ],
)
def test_other_schemes_are_refused(target: str) -> None:
    """None becomes a local folder of that name."""
    with pytest.raises(OttlaError) as refused:
        open_store(target)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    scheme = target.partition(":")[0]
    assert f"{target} can't hold a table: ottla has no storage {scheme}:" in refused.value.message
    assert "choose a path (/lake/flights, ~/flights) or a file: URL" in refused.value.message
    assert "Hadoop" not in refused.value.message


@pytest.mark.parametrize(
    "target",
    [
        "hdfs:/lake/flights",
        "hdfs://head:8020/lake",
        "HDFS://head/lake",
        "webhdfs://head:9870/lake",
        "swebhdfs://head:9871/lake",
    ],
)
def test_hdfs_is_refused_with_what_to_choose_instead(target: str) -> None:
    """In one sentence; no local folder gets that name."""
    with pytest.raises(OttlaError) as refused:
        open_store(target)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    assert refused.value.message == (
        f"{target} can't hold a table: ottla has no storage {target.partition(':')[0]}:; choose a "
        "path of a file system that all workers share (/lake/flights), or a store with the API of "
        "S3, which Hadoop's Ozone has (s3://BUCKET/…)"
    )


@pytest.mark.parametrize(
    ("target", "url"),
    [
        ("s3://bucket/table", "s3://bucket/table"),
        ("s3://bucket/table//", "s3://bucket/table"),
        ("s3://bucket", "s3://bucket"),
        ("S3A://bucket/a%20b", "s3a://bucket/a%20b"),
        ("gs://bucket/t", "gs://bucket/t"),
        ("az://container/t", "az://container/t"),
        ("abfss://box@acc.dfs.core.windows.net/t", "abfss://box@acc.dfs.core.windows.net/t"),
        ("/lake/t/", "/lake/t"),
    ],
)
def test_stores_of_urls(target: str, url: str) -> None:
    assert open_store(target).url == url


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("s3:/bucket/table", "names no bucket: s3://BUCKET/PATH"),
        ("s3:bucket", "names no bucket"),
        ("s3:///table", "names no bucket"),
        ("s3://bucket/t?x=1", "has a query or a fragment"),
        ("s3://bucket/100%", "has a % without two hexadecimal digits"),
        ("s3://bucket/a/../b", "has an empty part, . or .. in its path"),
        ("s3://bucket/a//b", "has an empty part, . or .. in its path"),
        ("abfss://acc.dfs.core.windows.net/t", "is not abfss://CONTAINER@ACCOUNT.…/PATH"),
    ],
)
def test_urls_that_mean_no_store_are_refused(target: str, why: str) -> None:
    with pytest.raises(OttlaError, match=re.escape(why)):
        open_store(target)


@pytest.mark.parametrize(
    "target",
    [
        "s3://AKIA:hidden@bucket/table",
        # Keys of S3 have slashes.
        "s3://AKIA:hid/hidden+x@bucket/table",
        "abfss://c:hidden@account.dfs.core.windows.net/t",
    ],
)
def test_credentials_in_a_url_are_refused_and_not_repeated(target: str) -> None:
    with pytest.raises(OttlaError, match="it takes no credentials") as refused:
        open_store(target)
    assert "hidden" not in refused.value.message


def test_options_of_others_are_refused(tmp_path: Path) -> None:
    with pytest.raises(OttlaError, match=r"is a folder, and takes no store option \(aws_region\)"):
        open_store(str(tmp_path), {"aws_region": "x"})


@pytest.mark.parametrize(
    ("target", "why"),
    [
        ("", "names no folder"),
        ("  ", "names no folder"),
        ("/lake/\0", "holds a zero byte"),
        ("~otto/flights", "begins with ~otto, the home of another user"),
        ("file://host/lake", "names a folder of another machine, host"),
        ("file://lake", "names a folder of another machine, lake"),
        ("file:lake", "has no absolute path"),
        ("file:", "has no absolute path"),
        ("file://", "has no absolute path"),
        ("file:///lake?x=1", "has a query or a fragment"),
        ("file:///lake#x", "has a query or a fragment"),
        ("file:///lake/100%", "has a % without two hexadecimal digits"),
        ("file:///lake/%00", "holds a zero byte"),
    ],
)
def test_words_without_a_folder_are_refused(target: str, why: str) -> None:
    with pytest.raises(OttlaError) as refused:
        local_folder(target, HOME)
    assert refused.value.code is ErrorCode.INVALID_REQUEST
    assert f"the target {target!r} {why}" in refused.value.message
    assert "choose a path (/lake/flights, ~/flights) or a file: URL" in refused.value.message


def test_relative_target_is_of_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert folder_of("flights") == tmp_path / "flights"
