"""This tree beside another one: did a change of the structure cost anything?

    git worktree add /tmp/before COMMIT && (cd /tmp/before && python setup.py build_ext --inplace)
    python -m bench.trees /tmp/before/src [NAME]... [--rounds N]

Both run at the same time on one machine and are measured in alternating rounds; the first rounds
warm up. A ratio above 1 says that this tree is the faster one. NAME: produce, consume, latency,
replicated, thousand.
"""

import argparse
import compileall
import functools
import statistics
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from bench import cluster_produce, consume, latency, produce, thousand_partitions
from bench.figures import Scale, spread
from bench.sides import NO_FSYNC, alternate, topic
from rig.broker import ottla
from rig.nodes import Node
from rig.ottla_cluster import ottla_cluster
from rig.paths import ROOT

Results = Mapping[str, list[dict[str, Any]]]


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.trees", description=__doc__)
    parser.add_argument("other", type=Path, help="the src folder of the other tree")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--quick", action="store_true", help="small sizes: does it run at all")
    arguments = parser.parse_args()
    scale = Scale(quick=arguments.quick, rounds=arguments.rounds)
    other = arguments.other.resolve()
    for source in (ROOT / "src", other):
        # As pip leaves what it installs: else a start is mostly the compiling of sources.
        compileall.compile_dir(source, quiet=1)
    for name in arguments.names or CASES:
        CASES[name](other, scale)


@contextmanager
def _nodes(other: Path) -> Iterator[list[Node]]:
    with ExitStack() as stack:
        yield [
            stack.enter_context(ottla(settings=NO_FSYNC, name="after")),
            stack.enter_context(ottla(settings=NO_FSYNC, source=other, name="before")),
        ]


def _say(what: str, key: str, results: Results, *, less_is_better: bool = False) -> None:
    """Print the ratio of the medians, and of each pair of rounds the spread."""
    after, before = ([each[key] for each in results[side]] for side in ("after", "before"))
    if less_is_better:
        after, before = before, after
    pairs = [a / b for a, b in zip(after, before, strict=True)]
    whole = statistics.median(after) / statistics.median(before)
    print(f"{what:<44} {whole:.3f} x   pairs: {spread(pairs)}", flush=True)


def _produce(other: Path, scale: Scale) -> None:
    with _nodes(other) as nodes:
        for kib in (8, 64, 1):
            act = functools.partial(produce._run, kib=kib, seconds=scale.pick(3, 1))
            results = alternate(nodes, scale, act)
            _say(f"produce {kib} KiB, requests/s", "requests/s", results)
            _say(f"produce {kib} KiB, CPU per GB", "cpu_s_per_gb", results, less_is_better=True)


def _consume(other: Path, scale: Scale) -> None:
    records = scale.pick(5_000_000, 200_000)
    with _nodes(other) as nodes, ExitStack() as stack:
        topics = {node.name: stack.enter_context(topic(node)) for node in nodes}
        for node in nodes:
            consume.fill(node, topics[node.name], records)
        act = functools.partial(consume._rdkafka, topics=topics, records=records)
        results = alternate(nodes, scale, act)
        _say("consume, librdkafka, records/s", "records/s", results)
        _say("consume, broker CPU", "broker_cpu_s", results, less_is_better=True)


def _latency(other: Path, scale: Scale) -> None:
    with _nodes(other) as nodes:
        act = functools.partial(latency._run, records=scale.pick(10_000, 1_500))
        results = alternate(nodes, scale, act)
        _say("latency p50", "p50_ms", results, less_is_better=True)
        _say("latency p99", "p99_ms", results, less_is_better=True)


def _replicated(other: Path, scale: Scale) -> None:
    with ExitStack() as stack:
        clusters = [
            stack.enter_context(ottla_cluster(name="after")),
            stack.enter_context(ottla_cluster(source=other, name="before")),
        ]
        records = scale.pick(1_000_000, 100_000)
        act = functools.partial(cluster_produce._run, clusters=clusters, records=records)
        results: dict[str, list[dict[str, Any]]] = {"after": [], "before": []}
        for number in range(scale.warm_up_rounds + scale.rounds):
            for cluster in clusters:
                result = act(cluster)
                if number >= scale.warm_up_rounds:
                    results[cluster.name].append(result)
    _say("3 brokers, acks=all, group commit, records/s", "records/s", results)
    _say("3 brokers, CPU of the brokers", "cpu_s", results, less_is_better=True)


def _thousand(other: Path, scale: Scale) -> None:
    results: dict[str, list[dict[str, Any]]] = {"after": [], "before": []}
    for _ in range(min(scale.rounds, scale.pick(3, 1))):
        for name, source in (("after", None), ("before", other)):
            with ottla_cluster(source=source, name=name) as cluster:
                result = thousand_partitions._once(
                    cluster, scale.pick(1000, 100), scale.pick(20, 5)
                )
                result["idle_percent"] = max(result["idle_percent"])
                results[name].append(result)
    for key in ("create_s", "describe_ms", "idle_percent", "one_restart_s", "all_restart_s"):
        _say(f"1,000 partitions: {key}", key, results, less_is_better=True)


CASES: Mapping[str, Callable[[Path, Scale], None]] = {
    "produce": _produce,
    "consume": _consume,
    "latency": _latency,
    "replicated": _replicated,
    "thousand": _thousand,
}

if __name__ == "__main__":
    main()
