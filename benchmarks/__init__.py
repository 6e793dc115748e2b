"""aioproducer beside other Kafka producers, on one machine, in alternating runs: ``python -m benchmarks``.

See ``docs/performance.md`` for the method. This package is part of the checkout, not of what is installed.
"""

import sys
from pathlib import Path

# ``python -m`` puts the checkout first; but what is installed goes before it: only that is compiled.
if sys.path[:1] == [str(Path(__file__).parents[1])]:
    sys.path.append(sys.path.pop(0))
