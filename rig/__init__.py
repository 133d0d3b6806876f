"""The test rig: Java and its jars, a real Kafka, our broker as a process, and accounts of CPU."""
