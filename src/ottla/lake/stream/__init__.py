"""The data source `ottla`, a topic as a stream, and tables that follow a topic.

Start reading with `options`, then `batch` and `planner`.
"""
