"""The data source `ottla`, a topic as a stream, and tables that follow a topic.

Begin with `options`, then `batch` and `positions`.
"""
