"""The broker process: composition root, dispatch, partitions, maintenance."""
