"""The sink and the source as Spark runs them, on the embedded broker."""
