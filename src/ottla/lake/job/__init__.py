"""Tasks, the files that they write, and their results. Tasks run in this process or on Spark.

Begin with `task`; `load_task` reads a range of a partition and writes one file.
"""
