"""The main job on real input: a stream of flights into a lake, exactly once, with proof."""
