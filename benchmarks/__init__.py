"""aioproducer beside other Kafka producers, on one machine, in alternating runs: ``python -m benchmarks``.

See ``docs/performance.md`` for the method. This package is part of the checkout, not of what is installed.
"""
