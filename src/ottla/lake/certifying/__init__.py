"""Certificates: what is proven of a table, for people who check with tools of their own."""
