"""Kafka's wire protocol, sans-IO: messages declared once, compiled per version on first use."""
