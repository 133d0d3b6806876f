"""Creates, grows and deletes topics through the coordination store.

Begin with `topics`.
"""
