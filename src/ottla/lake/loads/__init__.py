"""A load step by step: where it starts and ends, its plan, its commit."""
