"""Prometheus' text format, as the endpoint writes it."""

from prometheus_client.parser import text_string_to_metric_families

from ottla.broker.metrics.catalog import SECTIONS
from ottla.broker.metrics.samples import NO_LABELS, Family, Labels, Metric, SampleKind, exposition

HOSTILE = ('a"b', "back\\slash", "new\nline", '"} 1\nfake_metric 2\n#', "ünïcode ☃", "\ud800", "")


def written(*families: Family) -> str:
    return b"".join(exposition(families)).decode()


def test_a_metric_has_its_help_its_type_and_a_line_for_each_sample() -> None:
    metric = Metric("ottla_x_total", SampleKind.COUNTER, "What it counts", ("topic", "partition"))
    labels = [Labels(metric.labels, ("t", 0)), Labels(metric.labels, ("t", 1))]
    assert written(Family(metric, labels, [1, 2.5])) == (
        "# HELP ottla_x_total What it counts\n"
        "# TYPE ottla_x_total counter\n"
        'ottla_x_total{topic="t",partition="0"} 1\n'
        'ottla_x_total{topic="t",partition="1"} 2.5\n'
    )


def test_a_metric_without_samples_is_left_out() -> None:
    assert written(Family(Metric("a", SampleKind.GAUGE, "A"))) == ""
    assert written(Family(Metric("a", SampleKind.GAUGE, "A"), [NO_LABELS], [0])).endswith("\na 0\n")


def test_no_name_can_forge_a_line() -> None:
    """Another program reads back every name that a client can make, or what UTF-8 allows of it."""
    metric = Metric("a", SampleKind.GAUGE, "A", ("group",))
    labels = [Labels(("group",), (name,)) for name in HOSTILE]
    (family,) = text_string_to_metric_families(
        written(Family(metric, labels, [1.0] * len(HOSTILE)))
    )
    expected = [name.encode("utf-8", "replace").decode() for name in HOSTILE]
    assert [sample.labels["group"] for sample in family.samples] == expected


def test_long_families_are_written_in_pieces() -> None:
    """So that a loop that sends them can serve requests in between."""
    metric = Metric("a", SampleKind.GAUGE, "A", ("n",))
    labels = [Labels(("n",), (number,)) for number in range(2_500)]
    pieces = list(exposition([Family(metric, labels, [0] * 2_500)]))
    assert [piece.count(b"\n") for piece in pieces] == [2, 1_000, 1_000, 500]


def test_names_are_unique_and_of_prometheus_form() -> None:
    metrics = [metric for section in SECTIONS for metric in section.metrics]
    names = [metric.name for metric in metrics]
    assert len(set(names)) == len(names)
    for metric in metrics:
        if metric.name.startswith("ottla_"):
            assert metric.name.endswith("_total") == (metric.kind is SampleKind.COUNTER), (
                metric.name
            )
