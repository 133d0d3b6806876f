"""franz-go over TLS with SCRAM, PLAIN and certificates, rule by rule; needs Go. By hand."""
