"""The records of `__consumer_offsets`, as values and as Kafka's bytes.

Begin with `stored`, which decodes all of them.
"""
