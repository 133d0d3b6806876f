"""The drawings of the report."""

from demo.failover import Failover
from demo.plots import Plot, figure
from demo.story import Story

# What the drawing of the leader's death shows around it, in seconds.
_BEFORE_S, _AFTER_S = 3.0, 5.0
# The close look at the longest wait is so many times as long as the wait, and at least this.
_CLOSE_TIMES, _CLOSE_MS_MIN = 4.0, 400.0


def progress_plot(story: Story) -> str:
    """Records acknowledged and rows of flights over time, with the murders."""
    start = min(story.delivered[0]["at"], story.commits[0]["at"])
    acknowledged = [(told["at"] - start, told["count"]) for told in story.delivered]
    in_lake = [(0.0, 0)]
    for commit in story.commits:
        at = commit["at"] - start
        in_lake += [(at, in_lake[-1][1]), (at, commit["total"])]
    seconds = max(acknowledged[-1][0], in_lake[-1][0], 1.0)
    marks = [(at - start, what) for what, at in sorted(story.marks, key=lambda mark: mark[1])]

    def draw(width: int) -> Plot:
        plot = Plot(width, seconds, max(acknowledged[-1][1], in_lake[-1][1], 1))
        plot.axes("seconds", "records")
        plot.line(acknowledged, "acknowledged")
        plot.line(in_lake, "lake")
        for number, (at, _) in enumerate(marks, start=1):
            plot.mark(at, number)
        return plot

    return figure(
        "Records over time",
        draw,
        (
            ("acknowledged", "acknowledged to the producer"),
            ("lake", "in the table of flights, committed"),
        ),
        [f"{what}, after {at:.1f} s" for at, what in marks],
    )


def failover_plot(story: Story, failover: Failover) -> str:
    """Records acknowledged around the leader's death: of its partitions, and of the others."""
    moved = set(failover.moved)
    points: dict[bool, list[tuple[float, int]]] = {True: [], False: []}
    for told in story.delivered:
        at = told["at"] - failover.at
        if -_BEFORE_S <= at <= _AFTER_S:
            for its, line in points.items():
                count = sum(n for partition, n in told["partitions"] if (partition in moved) is its)
                line.append((at, count))
    lines = {its: [(at, n - line[0][1]) for at, n in line] for its, line in points.items() if line}
    most = max((count for line in lines.values() for _, count in line), default=1)

    def draw(width: int) -> Plot:
        plot = Plot(width, _AFTER_S, max(most, 1), -_BEFORE_S)
        plot.axes("seconds from the death", "records")
        plot.mark(0.0, 1)
        for its, line in lines.items():
            plot.line(line, "acknowledged" if its else "lake")
        return plot

    return figure(
        "Records acknowledged around the death of the leader",
        draw,
        (("acknowledged", "partitions it led"), ("lake", "the other partitions")),
        [f"broker {failover.victim} killed (-9)"],
    )


def wait_plot(story: Story, failover: Failover) -> str:
    """The longest wait from close by: of one partition, each acknowledgement, in milliseconds."""
    partition = failover.longest
    if partition is None or not story.steps.get(partition):
        return ""
    wait_ms = failover.waits_s[partition] * 1000
    began_ms = (failover.began_at[partition] - failover.at) * 1000
    # On a busy machine the longest wait near the death need not be the one across it.
    spans = [(began_ms, wait_ms)]
    across = failover.across.get(partition)
    if across is not None and across[0] != failover.began_at[partition]:
        spans.append(((across[0] - failover.at) * 1000, across[1] * 1000))
    room_ms = max(_CLOSE_TIMES * wait_ms, _CLOSE_MS_MIN) - wait_ms
    # The death is to be seen, though another wait after it may have been the longest.
    first_ms = min(began_ms, 0.0) - room_ms * 0.3
    last_ms = began_ms + wait_ms + room_ms * 0.6
    steps = [((at - failover.at) * 1000, count) for at, count in story.steps[partition]]
    shown = [(at, count) for at, count in steps if first_ms <= at <= last_ms]
    base = shown[0][1] if shown else 0
    line = [(at, count - base) for at, count in shown]
    most = max((count for _, count in line), default=1)
    moments = [(0.0, f"broker {failover.victim} killed (-9)")]
    moments.append((failover.elected_s * 1000, "the others name new leaders"))
    marks = [(at, what) for at, what in moments if first_ms <= at <= last_ms]

    def draw(width: int) -> Plot:
        plot = Plot(width, last_ms, max(most, 1), first_ms)
        plot.axes("milliseconds from the death", "records")
        for at, lasted_ms in spans:
            plot.span(at, at + lasted_ms, f"{lasted_ms:,.0f} ms")
        plot.steps(line, "acknowledged")
        for number, (at, _) in enumerate(marks, start=1):
            plot.mark(at, number)
        return plot

    return figure(
        f"The longest wait, {wait_ms:,.0f} milliseconds",
        draw,
        (
            ("acknowledged", f"acknowledged, partition {partition}"),
            ("span", "nothing acknowledged: " + " and ".join(f"{ms:,.0f} ms" for _, ms in spans)),
        ),
        [f"{what}, at {at:,.0f} ms" for at, what in marks],
    )


def commits_plot(story: Story) -> str:
    """Rows of each commit of flights, as bars."""
    commits = [commit for commit in story.commits if commit["rows"]]

    def draw(width: int) -> Plot:
        plot = Plot(width, len(commits) + 1, max(commit["rows"] for commit in commits))
        plot.axes("commit", "rows")
        for number, commit in enumerate(commits, start=1):
            title = f"commit {number}: {commit['rows']:,} rows, {commit['seconds']:.2f} s"
            plot.bar(number, commit["rows"], title)
        return plot

    return figure("Rows of each commit of flights", draw)


def planes_plot(story: Story) -> str:
    """Rows of the changelog table over time: it grows with new planes alone."""
    start = min(story.delivered[0]["at"], story.runs[0]["at"])
    line = [(0.0, 0)]
    for run in story.runs:
        line += [(run["at"] - start, line[-1][1]), (run["at"] - start, run["keys"])]
    marks = [(at - start, what) for what, at in sorted(story.marks, key=lambda mark: mark[1])]

    def draw(width: int) -> Plot:
        plot = Plot(width, max(line[-1][0], marks[-1][0] if marks else 0.0), max(line[-1][1], 1))
        plot.axes("seconds", "planes")
        plot.line(line, "lake")
        for number, (at, _) in enumerate(marks, start=1):
            plot.mark(at, number)
        return plot

    return figure(
        "Rows of the table of planes over time",
        draw,
        (("lake", "planes in the table, one row each"),),
        [f"{what}, after {at:.1f} s" for at, what in marks],
    )
