"""The same answers as Kafka's own classes, which are run with Java."""
