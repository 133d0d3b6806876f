"""Parses people's input and formats answers, for all nouns of the command line.

What a person types becomes a value here (`words`, `places`, `amount`, `units`, `moment`), and what
a command found becomes a table or JSON (`output`, `settings`, `plans`). Begin with `output.show`.
"""
