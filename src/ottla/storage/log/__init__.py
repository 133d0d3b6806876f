"""One partition's log: append, read, flush, truncate, retention, and opening it from its files.

Begin with `log`: its bounds, its parts, append and read. `flush_state` says what of it is on the
disk; `truncation`, `old_segments` and `relocation` are what happens to a log beside appends and
reads; `open_log` makes a log of its files; `scrub` looks for damage while the broker runs, and
`range_account` explains the offsets of a range.
"""
