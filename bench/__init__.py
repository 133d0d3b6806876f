"""Measurements: every figure that the project claims, beside Apache Kafka where Java is here."""
