"""The table's own files besides manifests: digests, chain, head markers, checkpoints."""
