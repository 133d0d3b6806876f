"""The log directories of a broker: the homes of its partitions, with checkpoints and marker files.

Begin with `log_directories`, which has a `placement`; then `log_directory`, which has its
`checkpoints` and its `run`. `salvage` saves what it can of a damaged internal log.
"""
