"""Creates, grows and deletes topics through the coordination store.

Start reading with `topics`.
"""
