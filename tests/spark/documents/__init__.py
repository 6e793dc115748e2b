"""What the documents say of Spark, run as it stands."""
