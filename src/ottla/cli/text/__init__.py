"""Parses what people type, and formats answers, for all nouns of the command line.

`words` and `places` parse arguments and options; `output`, `settings` and `plans` format answers as
tables or JSON. Begin with `output.show`.
"""
