"""The whole producer, when brokers are slower than its users, or gone."""
