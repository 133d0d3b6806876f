"""Logins, users and delegation tokens, answered by Ottla and by Apache Kafka alike."""
