"""Sockets: listeners, connections that cut bytes into requests, and ordered output."""
