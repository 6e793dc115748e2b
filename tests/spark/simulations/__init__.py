"""A query of Spark and its writes, simulated in memory, turn by turn."""
