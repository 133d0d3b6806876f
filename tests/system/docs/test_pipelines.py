"""What the page about pipelines says is what the code takes and writes."""

import re
from pathlib import Path

from ottla.lake.edges.metrics import METRICS
from ottla.lake.edges.pipeline_file import parse

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "how-to" / "write-a-pipeline.md").read_text()


def test_pipeline_of_the_page_is_one() -> None:
    """Every key that it shows is known."""
    (text,) = re.findall(r"^```toml\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    pipeline = parse(re.sub(r"^# ", "", text, flags=re.MULTILINE), "write-a-pipeline.md")
    options = pipeline.options
    assert pipeline.topic == "flights"
    assert (options["every"], options["max_bytes"]) == (10_000, 256_000_000)
    assert options["conf"] == {"spark.executor.memory": "4g"}


def test_page_names_every_metric() -> None:
    """In the words of the file's own help."""
    rows = dict(re.findall(r"^\| `(ottla_lake_\w+)` \| (.*) \|$", PAGE, re.MULTILINE))
    assert rows == dict(METRICS)
