"""The state of groups: it is changed by records alone, and read by every command.

Begin with `group`; `turn` is one command's working state, with the records that it writes.
"""
