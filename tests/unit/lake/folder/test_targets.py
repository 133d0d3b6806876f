"""What the words of a target mean: one folder of this machine, or an error."""

from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.folder.targets import folder_of, local_folder

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
        "s3://bucket/table",
        "s3:/bucket/table",
        "s3a://bucket/table",
        "S3:bucket",
        "hdfs:/lake/flights",
        "hdfs://head:8020/lake",
        "gs://bucket/table",
        "abfss://box@account.dfs.core.windows.net/t",
        "https://example.com/t",
        "flights:2024",
        "c:/lake",
    ],
)
def test_other_schemes_are_refused(target: str) -> None:
    """None becomes a local folder of that name."""
    with pytest.raises(OttlaError) as refused:
        local_folder(target, HOME)
    assert refused.value.code is ErrorCode.UNSUPPORTED_VERSION
    scheme = target.partition(":")[0]
    assert f"{target} can't hold a table: ottla can't link files exclusively on {scheme}:" in (
        refused.value.message
    )
    assert "choose a path (/lake/flights, ~/flights) or a file: URL" in refused.value.message


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
