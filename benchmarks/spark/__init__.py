"""The sink for Spark, and the audit."""
