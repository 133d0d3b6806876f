"""The store in a ZooKeeper ensemble, by kazoo. Begin in `store`."""
