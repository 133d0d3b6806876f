"""Formats a measurement, for people and for programs."""

from typing import Any

import click

from ottla.base.quantities import counted
from ottla.cli.text.output import show_one
from ottla.diagnosis.performance import Performance

_SHARES = (("p50", 0.5), ("p99", 0.99), ("max", 1.0))


def show_performance(topic: str, found: Performance, form: str) -> None:
    """One line, or an object."""
    latencies = {name: found.latency_ms(share) for name, share in _SHARES}
    if form == "json":
        answer: dict[str, Any] = {
            "topic": topic,
            "records": found.records,
            "bytes": found.bytes,
            "seconds": round(found.seconds, 3),
            "records_per_s": round(found.records_per_s),
            "bytes_per_s": round(found.bytes_per_s),
        }
        for name, latency_ms in latencies.items():
            answer[f"latency_ms_{name}"] = None if latency_ms is None else round(latency_ms, 2)
        show_one("json", answer)
        return
    words = (
        f"{counted(found.records, 'record')} in {found.seconds:.2f} s: {found.records_per_s:,.0f} "
        f"records/s, {found.bytes_per_s / 1e6:,.1f} MB/s"
    )
    if found.latencies_ms:
        parts = ", ".join(f"{name} {latency_ms:.1f}" for name, latency_ms in latencies.items())
        words += f"; acknowledged after {parts} ms"
    click.echo(words)
