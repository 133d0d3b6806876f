"""The own files of a table beside its manifests: digests, chain, head markers, checkpoints."""
