"""What Kafka's own classes say, run with Java, is what is said here."""
