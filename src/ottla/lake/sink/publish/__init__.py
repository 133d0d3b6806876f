"""Bulk loads of tables and files into topics, exactly once. Begin with `publishing`."""
