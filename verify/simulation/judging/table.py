"""A run as a table for people: faults, their targets, and violations."""

from verify.simulation.judging.report import Report


def summary(report: Report) -> str:
    """One line."""
    verdict = "ok " if report.is_good else "BAD"
    reached = " ".join(f"{what}:{count}" for what, count in sorted(report.sometimes.items()))
    return (
        f"{verdict} seed {report.seed}  {report.profile.brokers} brokers  "
        f"{report.virtual_s:6.1f} s in {report.real_s:5.1f} s ({report.speed:4.1f}x)  "
        f"{report.records_acknowledged:6d} acknowledged  hash {report.digest}  {reached}"
    )


def repeatable(report: Report) -> str:
    """One line that is the same in every run of the seed, on every machine."""
    verdict = "ok" if report.is_good else "BAD"
    return f"seed {report.seed} {verdict} {report.digest} {report.virtual_s:.6f}"


def events(report: Report) -> str:
    """All that happened to the cluster, a line each, in the order of time."""
    width = max((len(where) for _, where, _ in report.events), default=0)
    return "\n".join(
        f"{at_s:10.3f} s  {where:<{width}}  {what}" for at_s, where, what in report.events
    )


def wrongs(report: Report, limit: int = 20) -> str:
    """What was violated, a line each."""
    lines = report.wrongs()
    shown = [f"  ! {line}" for line in lines[:limit]]
    if len(lines) > limit:
        shown.append(f"  ! … and {len(lines) - limit} more")
    return "\n".join(shown)
