"""aioproducer beside other producers, client by client in alternating runs on one broker.

commands.py    ``python -m benchmarks``, ``curves``, ``lines`` and ``report``: arguments, files and exit status
comparison.py  a whole comparison: the clients that are there, a broker, all runs
broker.py      where a client's runs go
far_brokers.py brokers behind lines, and how much a line carries
runner.py      the order of the runs: each client once in every round
worker.py      the process of one client
case.py        one work, and all runs of it
figures.py     the figures that are compared
targets.py     the targets of aioproducer, and whether they are met
report.py      the figures as tables, as a plot and as JSON
bars.py        the plot
curves.py      the figures of ``curves``, as tables and as a plot
lines.py       the figures of ``lines``, as tables and as a plot
"""
