"""The log directories of a broker: they hold its partitions' logs, checkpoints and marker files.

Begin with `log_directories` (all directories of a broker), then `log_directory` (one of them).
`placement` chooses the directory of each partition, `checkpoints` keeps the offset checkpoints,
and `run` records how the broker's last run ended. `salvage` rebuilds a damaged log that has no
other copy.
"""
