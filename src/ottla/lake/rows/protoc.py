"""Compiles Protobuf schema files with the compiler in the package grpcio-tools."""

import importlib.util
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from ottla.lake.rows.avro_values import SchemaUnusable
from ottla.lake.rows.field_reader import missing

_SECONDS_MAX = 60


def compiled_file(path: Path, folders: Sequence[Path] = ()) -> bytes:
    """Return the FileDescriptorSet of a `.proto` file and its imports, the file itself last.

    Imports are looked up in `folders` and in the file's own folder. Raises SchemaUnusable.
    """
    with TemporaryDirectory() as made:
        return _compiled(path.name, [*folders, path.parent], Path(made) / "descriptors")


def compiled_texts(texts: Mapping[str, str], name: str) -> bytes:
    """Compile files in memory, by the names that imports use. Raises SchemaUnusable."""
    with TemporaryDirectory() as made:
        root = Path(made).resolve() / "files"
        for each, text in texts.items():
            path = (root / each).resolve()
            if not path.is_relative_to(root):
                raise SchemaUnusable(f"the schema of Protobuf imports {each!r}, which is no name")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return _compiled(name, [root], Path(made) / "descriptors")


def _compiled(name: str, folders: Sequence[Path], made: Path) -> bytes:
    tools = importlib.util.find_spec("grpc_tools")
    if tools is None or tools.origin is None:
        raise missing("grpcio-tools", "protobuf", "compiling .proto files")
    known = Path(tools.origin).parent / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", "--include_imports"]
    command += [f"-I{folder}" for folder in (*folders, known)]
    command += [f"--descriptor_set_out={made}", name]
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=_SECONDS_MAX, check=False
        )
    except subprocess.TimeoutExpired:
        raise SchemaUnusable(f"protoc takes longer than {_SECONDS_MAX} s for {name}") from None
    if done.returncode:
        raise SchemaUnusable(f"the schema of Protobuf can't be compiled: {done.stderr.strip()}")
    return made.read_bytes()
