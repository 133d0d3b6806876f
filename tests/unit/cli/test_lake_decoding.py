"""Options of `ottla lake load` that say how records are decoded."""

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from ottla.base.errors import OttlaError
from ottla.cli.lake.arguments import declares
from ottla.lake import Decode, DecodeOptions, Format, columns
from ottla.lake.model.option import filled
from ottla.lake.write.settings import decode_of


def given(*options: str) -> Any:
    """What the options declare."""
    found: list[Any] = []

    @click.command(cls=declares("DecodeOptions"))
    def command(**decoding: Any) -> None:
        found.append(decode_of(filled(DecodeOptions, decoding)))  # type: ignore[arg-type]

    done = CliRunner().invoke(command, options)
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        raise done.exception
    assert done.exit_code == 0, done.output
    return found[0]


def test_options_declare_formats_columns_and_what_becomes_of_bad_records() -> None:
    """Without any of them nothing is declared."""
    assert given() is None
    found = given(
        "--value", "json", "--column", "id=int64", "--column", "at=timestamp(ms)",
        "--key", "string",
        "--on-bad-record", "dead-letter", "--drop-raw",
    )  # fmt: skip
    assert found == Decode(
        value=Format("json", columns({"id": "int64", "at": "timestamp(ms)"})),
        key=Format("string"),
        on_bad_record="dead-letter",
        keep_raw=False,
    )


def test_a_schema_comes_from_a_file(tmp_path: Path) -> None:
    """Avro as it stands, Protobuf compiled; one that can't be used says why."""
    avro = tmp_path / "u.avsc"
    avro.write_text('"string"')
    found = given("--value", "avro", "--schema-file", str(avro))
    assert found.value == Format("avro", schema='"string"')
    proto = tmp_path / "u.proto"
    proto.write_text('syntax = "proto3"; message U { int64 id = 1; }')
    found = given("--value", "protobuf", "--schema-file", str(proto), "--message", "U")
    assert found.value.message == "U"
    proto.write_text("oops")
    with pytest.raises(OttlaError, match=r"u\.proto can't be used: .*can't be compiled"):
        given("--value", "protobuf", "--schema-file", str(proto))


def test_a_file_of_toml_declares_the_same_and_options_overrule_it(tmp_path: Path) -> None:
    """Paths in it are relative to itself."""
    (tmp_path / "u.avsc").write_text('"long"')
    file = tmp_path / "pipeline.toml"
    file.write_text(
        '[decode]\nvalue = "avro"\nschema_file = "u.avsc"\non_bad_record = "null"\n'
        '[decode.columns]\nn = { type = "int64", source = "$" }\n'
    )
    found = given("--decode-file", str(file), "--on-bad-record", "fail")
    assert found == Decode(
        value=Format("avro", columns({"n": {"type": "int64", "source": "$"}}), schema='"long"')
    )
    file.write_text("[source]\n")
    with pytest.raises(OttlaError, match=r"has no table \[decode\]"):
        given("--decode-file", str(file))
