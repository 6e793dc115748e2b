"""The messages, one file per API, declared in the order and under the names of Kafka's specifications."""
