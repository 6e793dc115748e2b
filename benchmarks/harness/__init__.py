"""The parts that every command is made of.

command.py            options, progress, the report and the exit status
arguments.py          types of command line arguments
runtime.py            the event loop and the garbage collector
environment.py        machine, versions and build, for the head of a report
statistics.py         spreads of rounds, ratios of two sides, quantiles of samples
results.py            files of figures
plot.py               plots of lines
svg.py                the pieces of plots
usage.py              CPU time and memory of processes
machine_cpu.py        how busy the machine was with other things
heartbeat.py          for how long the event loop stood still
processes.py          parts of the benchmarks in processes of their own
page_cache.py         the same state of it for every run
topics.py             topics for one run, and how many records are in them
discarding_broker.py  a broker that keeps nothing
metered_line.py       a line that delays every byte, and counts requests
produce_meter.py      the count
produce_frame.py      a Produce request as bytes
blocking_connection.py a connection without asyncio, a request at a time
"""
