"""How long the console's pages take about a large cluster: `python -m bench.console`.

A broker with 1,000 topics and 10,000 groups, a console process, and pages read one after another,
as a browser reads them; each figure is the slowest and the median of several.
"""

import os
import statistics
import subprocess
import sys
import time
import urllib.request

from ottla.client import TopicPartition, sync
from ottla.client.admin.topics import NewTopic
from rig.broker import ottla

TOPICS, GROUPS, TIMES = 1_000, 10_000, 7
PAGES = (
    "/",
    "/topics",
    "/topics?filter=topic-07",
    "/topics/topic-0007",
    "/topics/topic-0007/records",
)


def fill(bootstrap: str) -> None:
    """Create the topics, and groups that have committed an offset each."""
    with sync.Admin(bootstrap) as admin:
        admin.topics.create_all(
            [NewTopic(name=f"topic-{number:04}", partitions=3) for number in range(TOPICS)]
        )
        for number in range(GROUPS):
            place = TopicPartition(f"topic-{number % TOPICS:04}", 0)
            admin.groups.set_offsets(f"group-{number:05}", {place: 0})
    with sync.Producer(bootstrap) as producer:
        for number in range(1_000):
            producer.send("topic-0007", f'{{"n": {number}}}', key=f"k{number}")
        producer.flush()


def main() -> None:
    with ottla() as node:
        fill(node.bootstrap)
        command = [sys.executable, "-m", "ottla.cli", "console", "--bootstrap", node.bootstrap]
        command += ["--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=os.environ) as child:
            assert child.stdout is not None
            address = child.stdout.readline().split()[-1]
            try:
                for page in PAGES:
                    taken = [read(address + page) for _ in range(TIMES)]
                    print(
                        f"{page:<32} first {taken[0]:.3f} s, median {statistics.median(taken):.3f}"
                        f" s, slowest {max(taken):.3f} s"
                    )
            finally:
                child.terminate()


def read(address: str) -> float:
    """Seconds from the request to the page's last byte."""
    began_s = time.perf_counter()
    with urllib.request.urlopen(address, timeout=60) as answer:
        answer.read()
    return time.perf_counter() - began_s


if __name__ == "__main__":
    main()
