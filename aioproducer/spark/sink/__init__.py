"""Sends the rows of a task to their topics.

Options and columns are checked on the driver before any task runs, and a broker must answer. A task makes a producer,
takes rows from Spark, sends them, and checks that they were all. ``writer.py``, beside this room, calls all of this.

sink_options.py    the options of the sink
sink_schema.py     the columns that become parts of records
reachable.py       checks once on the driver whether a broker answers
task.py            what a task knows about itself
task_producer.py   the producer of a task
read_ahead.py      Spark's blocking iterator of rows as an asynchronous one
topic_streams.py   sends the rows of a task to their topics
whole_input.py     checks that the rows of a task are complete
"""
