"""The fast path of Produce does what the slow path does, byte by byte.

Two brokers receive the same bytes. They differ in one thing: only one of them may use the fast
path. Everything else must be equal: the bytes sent to clients, offsets and producers in memory,
all files after an orderly stop, and the lines in the operator's log.
`python tests/unit/broker/test_produce_shortcut.py --seeds 10000` compares more drawn requests.
"""

import argparse
import inspect
import sys
import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from random import Random
from typing import Any

import pytest

from ottla.broker.handlers.produce import Produce
from ottla.broker.partitions.partition import Partition
from ottla.broker.produce.acknowledgement import Acknowledgement
from ottla.broker.produce.known import Known
from ottla.broker.produce.shortcut import ProduceShortcuts
from ottla.wire.messages.produce import ProduceRequest
from tests.unit.broker.produce_scenes import ALL, drawn, scenes
from tests.unit.broker.produce_world import Scene, Seen, counted, play, slow_path_only

# Versions below the first of the declaration are advertised and refused.
VERSIONS = range(ProduceRequest.__versions__[0], Produce.api.versions.max + 1)
GROUP = {"log.flush.policy": "group"}
# With this one acks=all is answered at once.
OS = {"log.flush.policy": "os"}
SEEDS = range(40)


def differences(fast: Seen, slow: Seen, played: list[Scene]) -> list[str]:
    """Where two plays differ: the names of scenes and files, and log lines."""
    found = []
    for scene, *seen in zip(
        played, fast.answers, slow.answers, fast.states, slow.states, strict=True
    ):
        answer, expected, state, expected_state = seen
        if answer != expected:
            found.append(f"{scene.name}: answered {answer}, not {expected}")
        if state != expected_state:
            found.append(f"{scene.name}: holds {state}, not {expected_state}")
    names = fast.files.keys() | slow.files.keys()
    found += [name for name in sorted(names) if fast.files.get(name) != slow.files.get(name)]
    found += [f"log: {line}" for line in {*fast.lines} ^ {*slow.lines}]
    return found if found or fast == slow else ["the order of the log's lines"]


def compared(played: list[Scene], settings: dict[str, str]) -> tuple[list[str], int, int]:
    """Where the paths differ; how many requests, and how many runs, the fast path served."""
    with slow_path_only(), counted() as untaken:
        slow = play(played, settings)
    assert (untaken.alone, untaken.together) == (0, 0)
    with counted() as taken:
        fast = play(played, settings)
    return differences(fast, slow, played), taken.alone, taken.together


@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
@pytest.mark.parametrize("learnt", [False, True], ids=["not learnt", "learnt"])
@pytest.mark.parametrize("acks", [1, -1])
@pytest.mark.parametrize("version", VERSIONS)
def test_both_paths_do_the_same(version, acks, learnt, together):
    """Good requests, bad ones and events between them: the same bytes out and in the logs."""
    found, alone, runs = compared(scenes(version, acks, learnt=learnt, together=together), GROUP)
    assert found == []
    if version >= 5:
        # The fast path did serve.
        assert alone > 100
        assert (runs > 30) == together


@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
@pytest.mark.parametrize("version", VERSIONS)
def test_both_paths_do_the_same_without_acknowledgement(version, together):
    """No request is answered; an error closes the connection, and drops what follows it."""
    found, _, _ = compared(scenes(version, 0, learnt=True, together=together), GROUP)
    assert found == []


@pytest.mark.parametrize("together", [False, True], ids=["alone", "together"])
@pytest.mark.parametrize("version", [8, 9, VERSIONS[-1]])
def test_both_paths_do_the_same_without_group_commit(version, together):
    """log.flush.policy=os: acks=all is answered with the append."""
    found, alone, _ = compared(scenes(version, -1, learnt=True, together=together), OS)
    assert found == []
    assert alone > 100


def check_drawn(seed: int) -> tuple[int, int]:
    """Compare the paths over drawn scenes; how many requests and runs the fast one served."""
    random = Random(seed)
    played = [drawn(random, random.choice(VERSIONS), random.choice([1, -1])) for _ in range(4)]
    found, alone, runs = compared(played, random.choice([GROUP, OS]))
    assert found == [], f"seed {seed}: {found}"
    return alone, runs


def test_both_paths_do_the_same_with_drawn_requests():
    """Requests and events of all kinds, in a drawn order."""
    taken = [check_drawn(seed) for seed in SEEDS]
    assert sum(alone for alone, _ in taken) > 500
    assert sum(runs for _, runs in taken) > 100


@contextmanager
def broken(owner: type, name: str, text: str, other: str) -> Iterator[None]:
    """A method whose source has `other` in the place of `text`."""
    method: Callable[..., Any] = vars(owner)[name]
    source = textwrap.dedent(inspect.getsource(method))
    assert source.count(text) == 1, f"{owner.__name__}.{name} has no longer this once: {text}"
    made: dict[str, Any] = {}
    exec(source.replace(text, other), vars(sys.modules[owner.__module__]), made)
    setattr(owner, name, made[name])
    try:
        yield
    finally:
        setattr(owner, name, method)


@cache
def _slow(version: int, acks: int, together: bool) -> Seen:
    with slow_path_only():
        return play(scenes(version, acks, learnt=True, together=together), GROUP)


def is_found() -> bool:
    """Whether a scene shows a difference between the fast path as it is now and the slow path."""
    for version in (9, 13):
        for acks in (-1, 1, 0):
            for together in (True, False):
                played = scenes(version, acks, learnt=True, together=together)
                if differences(play(played, GROUP), _slow(version, acks, together), played):
                    return True
    return False


_WAITS = "known.acks == _ACKS_ALL and partition.high_watermark"
_LACKS = "(partition.under_min_isr and known.acks == _ACKS_ALL)"
_CONFIGURED_MAX = "min(config.max_message_bytes, config.segment_bytes)"
MUTANTS = {
    "it skips the check of min.insync.replicas": (ProduceShortcuts, "serve", _LACKS, "False"),
    "a run skips the check of min.insync.replicas": (
        ProduceShortcuts, "serve_run", _LACKS, "False",
    ),
    "it serves producers whose batches are in doubt": (
        ProduceShortcuts, "serve", "partition.gaps.is_any", "False",
    ),
    "it answers acks=all before the commit": (ProduceShortcuts, "serve", _WAITS, "False and 0"),
    "a run answers acks=all before the commit": (
        ProduceShortcuts, "serve_run", _WAITS, "False and 0",
    ),
    "each request of a run waits for the batch before its own": (
        ProduceShortcuts, "_defer_run", "last_offset_delta + 1", "last_offset_delta",
    ),
    "it ignores API key and version": (ProduceShortcuts, "serve", "head != known.head", "False"),
    "it appends transactional batches": (
        ProduceShortcuts, "serve", "_is_transactional(records)", "False",
    ),
    "the base offset is wrong": (
        ProduceShortcuts, "serve", "appended.base_offset,", "appended.last_offset,",
    ),
    "the log start offset is wrong": (ProduceShortcuts, "serve", "appended.log_start_offset", "0"),
    "the log start offset of a run is wrong": (
        ProduceShortcuts, "serve_run", "base_offset, log.log_start_offset", "base_offset, 0",
    ),
    "the time of the append is missing": (
        ProduceShortcuts, "serve", "appended.log_append_time", "-1",
    ),
    "the correlation id is wrong": (
        ProduceShortcuts, "serve", "POSITION, correlation_id", "POSITION, 7",
    ),
    "it answers acks=0": (ProduceShortcuts, "learn", "(1, _ACKS_ALL)", "(0, 1, _ACKS_ALL)"),
    "it appends to internal topics": (
        ProduceShortcuts, "learn", "partition.topic in INTERNAL_TOPICS", "False",
    ),
    "it appends records without a key to a compacted topic": (
        Known, "_take", "not config.is_compacted", "True",
    ),
    "it misses changed settings": (Known, "_takes_usual", "config is not self._config", "False"),
    "it appends batches that are too large": (Known, "_take", _CONFIGURED_MAX, "1 << 30"),
    "it appends records of the far future": (
        Known, "_take", "config.message_timestamp_after_max_ms", "1 << 60",
    ),
    "a refusal has no message": (Known, "refusal", "error_message=error.message,", ""),
    "a refusal has a base offset": (Known, "refusal", "base_offset=-1,", "base_offset=0,"),
    "a run appends duplicates": (
        Partition, "append_run", "not can_append_run(log, run, now_ms)", "False",
    ),
    "a timeout is answered as a success": (
        Acknowledgement, "_give", "code is not ErrorCode.NONE", "False",
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_broken_fast_path_is_found(mutant):
    """Each mutant does one thing wrong, and a scene shows it."""
    with broken(*MUTANTS[mutant]):
        assert is_found()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    taken = [check_drawn(seed) for seed in range(chosen.first, chosen.first + chosen.seeds)]
    alone, runs = (sum(each) for each in zip(*taken, strict=True))
    sys.stdout.write(f"{len(taken)} seeds of {len(ALL)} kinds: {alone} requests, {runs} runs\n")


if __name__ == "__main__":
    main()
