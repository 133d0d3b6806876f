"""Where the rig keeps what it fetches and writes."""

from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
RIG = ROOT / ".rig"
OUT = ROOT / "out"
