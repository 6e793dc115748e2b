"""One file per API, each headed by its versions and where it is simpler than Kafka."""
