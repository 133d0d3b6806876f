"""The figures of a broker for Prometheus and OpenTelemetry, off unless a setting asks for them.

Everything comes from the parts' `status()`. `catalog` names the metrics and says where each is
found; `collection` turns statuses into samples; `endpoint` and `otlp` hand them out. Begin with
`part`.
"""
