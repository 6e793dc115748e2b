"""The whole producer, exactly once: transactions of both protocols."""
