"""One partition's log: append, read, flush, truncate, retention, and opening it from its files.

Begin with `log`: its bounds, its parts, append and read. `flush` tracks what of it is on the disk;
`truncation`, `retention` and `relocation` are the other changes of a log; `open_log` makes a log of
its files; `scrub` looks for damage while the broker runs, and `range_account` explains the offsets
of a range.
"""
