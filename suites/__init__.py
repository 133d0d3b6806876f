"""Test suites and tools of other projects, run against Ottla and against Apache Kafka.

They come from the package registries at pinned versions; nothing of them is kept here.
"""
