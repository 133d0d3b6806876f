"""What docs/lake.md says of pipelines is what the code takes and writes."""

import re
from pathlib import Path

from ottla.lake.pipeline.metrics import METRICS
from ottla.lake.pipeline.settings import parse

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "lake.md").read_text()
SECTION = PAGE[PAGE.index("\n## Pipelines\n") :]


def test_pipeline_of_the_page_is_one() -> None:
    """Every key that it shows is known."""
    (text,) = re.findall(r"^```toml\n(.*?)^```$", SECTION, re.DOTALL | re.MULTILINE)
    pipeline = parse(re.sub(r"^# ", "", text, flags=re.MULTILINE), "docs/lake.md")
    assert (pipeline.topic, pipeline.every_s, pipeline.max_bytes) == ("flights", 10, 256_000_000)
    assert pipeline.spark.conf == {"spark.executor.memory": "4g"}


def test_page_names_every_metric() -> None:
    """In the words of the file's own help."""
    rows = dict(re.findall(r"^\| `(ottla_lake_\w+)` \| (.*) \|$", SECTION, re.MULTILINE))
    assert rows == dict(METRICS)
