"""One partition's log: append, read, flush, truncate, retention, and opening it from its files.

Begin with `log`: its bounds, its parts, append and read. `flush` tracks what is on the disk;
`truncation`, `retention` and `relocation` change a log in other ways; `open_log` opens a log from
its files; `scrub` looks for damage while the broker runs; `range_account` explains the offsets of a
range.
"""
