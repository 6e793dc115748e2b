"""The delivery audit: a Spark job over topics of any size that proves what was delivered (``docs/spark.md``).

``run`` reads the topics of a cluster, and ``job`` applies the rules in order. Each rule is a function from data frames
to a data frame of findings. ``checks`` says what could be checked, and so what the verdict is worth; ``summary`` and
``report/`` show it. ``watch`` applies rules to what is being written: ``stream`` to records, ``alerts`` to the reports
of producers.

run.py           an audit from end to end, as ``aioproducer audit`` runs it
job.py           the audit over data frames: topics in, Parquet tables and a summary out
options.py       the options of an audit
session.py       a Spark session for audits on this machine
source.py        topics through the data source
place.py         where an audit writes
frames/          the data frames that rules look at
rules/           the rules, and the figures of the report
finding.py       what an audit may find
checks.py        what was checked, of how many records
summary.py       what an audit found, small enough to keep
report/          the summary as HTML
watch.py         watches a running system: its topics and its producers
stream.py        the rules for single partitions, over the micro-batches of a stream
tails.py         what a streaming audit keeps of earlier batches
alerts.py        when a watch raises an alert
spark_errors.py  Spark's errors in one line
"""
