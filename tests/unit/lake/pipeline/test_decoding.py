"""What [decode] of a pipeline may say."""

from collections.abc import Callable
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.lake.edges.pipeline import run
from ottla.lake.edges.pipeline_file import Pipeline, read
from ottla.lake.edges.planned_load import look
from ottla.lake.write.settings import decode_of


@pytest.mark.parametrize("verb", [look, run])
def test_a_plan_refuses_what_a_run_refuses(verb: Callable[[Pipeline], object]) -> None:
    """Before it asks a broker: none is at this address."""
    words = {"value": "json", "on_bad_records": "null"}
    pipeline = Pipeline("flights", "/nowhere", {"bootstrap": "localhost:1", "decode": words})
    with pytest.raises(OttlaError) as error:
        verb(pipeline)
    said = "decode has on_bad_records, which is not known; did you mean on_bad_record?"
    assert error.value.message == said


def test_files_of_schemas_are_keys_of_a_pipeline_alone(tmp_path: Path) -> None:
    """They stand beside it; a mistyped one is named with the right one."""
    (tmp_path / "flight.avsc").write_text('"string"')

    def pipeline(key: str) -> Pipeline:
        path = tmp_path / "flights.toml"
        path.write_text(
            '[source]\ntopic = "flights"\n[target]\ntable = "table"\n'
            f'[decode]\nvalue = "avro"\n{key} = "flight.avsc"\n'
        )
        return read(str(path))

    found = decode_of(pipeline("schema_file").load)
    assert found is not None
    assert found.value is not None
    assert found.value.schema == '"string"'
    with pytest.raises(OttlaError, match=r"did you mean schema_file\?"):
        decode_of(pipeline("shema_file").load)
