"""Tasks, the files that they write, their results, and the two places where they run.

Begin with `task`; `load_task` reads a range of a partition and writes one file.
"""
