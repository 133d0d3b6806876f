"""The log directories of a broker: where partitions lie, their checkpoints and marker files.

Begin with `log_directories`, then `log_directory`.
"""
