"""Registers the data source with Spark, without a call by the user.

PySpark imports every top-level module named ``pyspark_…``.
"""

import contextlib

# Whatever data source is asked for, Spark imports this one too: where there is no PySpark that it needs, the others
# must not suffer.
with contextlib.suppress(ImportError):
    from aioproducer.spark.data_source import AioproducerDataSource as DefaultSource

__all__ = ["DefaultSource"]
