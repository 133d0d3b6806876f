"""Certificates: the proof of a table, for people who check it with tools of their own."""
