"""What [decode] of a pipeline declares, with the files that it names."""

from pathlib import Path

from ottla.lake.decode.schema_files import schema_text
from ottla.lake.decode.spec import Decode, decode_from, require_options
from ottla.lake.pipeline.settings import Pipeline


def decode_of(pipeline: Pipeline) -> Decode | None:
    """What [decode] declares; schemas are read from their files. Raises OttlaError."""
    if pipeline.decode is None:
        return None
    options = dict(pipeline.decode)
    require_options(options, ("schema_file", "key_schema_file"))
    for side, prefix in (("value", ""), ("key", "key_")):
        path = options.pop(f"{prefix}schema_file", None)
        if path is not None:
            kind = str(options.get(side, ""))
            options[f"{prefix}schema"] = schema_text(Path(pipeline.folder, str(path)), kind)
    return decode_from(options)
