"""The data source for Spark beside Spark's own, and the delivery audit.

spark.py           ``spark``: sinks beside each other
spark_process.py   the process of the Spark session
audit.py           ``audit``: time and memory of an audit, as topics grow
audited_topics.py  topics in perfect order, of any size
planted_faults.py  one fault of each kind, planted in them
"""
