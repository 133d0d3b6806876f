"""The side files of a ledger: a checksum, then one line of JSON."""

import json
from dataclasses import astuple
from typing import Any
from zlib import crc32

from ottla.ledger.history import Evidence, Gone, History, Loss, StartCause
from ottla.ledger.removals import Cell, Pass, SegmentRemovals

_VERSION = 1


def encode_removals(removals: SegmentRemovals) -> bytes:
    """Encode a segment's ledger file; empty for no removals."""
    if not removals.cells and not removals.reach:
        return b""
    passes = [[one.number, one.at_ms, one.since] for one in removals.passes.values()]
    cells = [
        [cell.start, cell.end, [n for pair in cell.counts.items() for n in pair]]
        for cell in removals.cells
    ]
    return _sealed({"passes": passes, "cells": cells, "reach": removals.reach})


def decode_removals(encoded: bytes) -> SegmentRemovals:
    """Parse the output of `encode_removals`. Raises ValueError."""
    if not encoded:
        return SegmentRemovals()
    held = _opened(encoded)
    cells = [
        Cell(start, end, dict(zip(counts[::2], counts[1::2], strict=True)))
        for start, end, counts in held["cells"]
    ]
    return SegmentRemovals(cells, [Pass(*one) for one in held["passes"]], held["reach"])


def encode_history(history: History) -> bytes:
    """Encode a log's ledger file."""
    return _sealed(
        {
            "gone": [
                [one.start, one.end, one.first_ms, one.last_ms]
                + [int(n) for pair in one.counts.items() for n in pair]
                for one in history.gone
            ],
            "lost": [[one.start, one.end, one.leader_epoch, one.at_ms] for one in history.lost],
            "unrecorded_below": history.unrecorded_below,
            "evidence": [astuple(one) for one in history.evidence],
            "compacted_below": history.compacted_below,
            "next_pass": history.next_pass,
        }
    )


def decode_history(encoded: bytes) -> History:
    """Parse the output of `encode_history`. Raises ValueError."""
    held = _opened(encoded)
    history = History(
        unrecorded_below=held["unrecorded_below"],
        compacted_below=held["compacted_below"],
        next_pass=held["next_pass"],
    )
    for start, end, first_ms, last_ms, *counts in held["gone"]:
        by_cause = {
            StartCause(cause): count for cause, count in zip(counts[::2], counts[1::2], strict=True)
        }
        history.gone.append(Gone(start, end, by_cause, first_ms, last_ms))
    # Files of earlier versions have none.
    history.evidence += [Evidence(*one) for one in held.get("evidence", ())]
    history.lost += [Loss(*one) for one in held["lost"]]
    return history


def _sealed(held: dict[str, Any]) -> bytes:
    body = json.dumps({"version": _VERSION, **held}, separators=(",", ":")).encode()
    return f"{crc32(body):08x}\n".encode() + body + b"\n"


def _opened(encoded: bytes) -> dict[str, Any]:
    seal, _, body = encoded.partition(b"\n")
    body = body.removesuffix(b"\n")
    if seal != f"{crc32(body):08x}".encode():
        raise ValueError("the checksum of the ledger is wrong")
    held: dict[str, Any] = json.loads(body)
    if held["version"] != _VERSION:
        raise ValueError(f"version {held['version']} of the ledger is not known")
    return held
