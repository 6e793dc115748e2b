"""The embedded broker and Apache Kafka get the same requests, and must give the same answers."""
