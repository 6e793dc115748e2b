"""aioproducer beside other Kafka producers, on one machine, in alternating runs: ``python -m benchmarks``.

See ``docs/performance.md`` for the method. This package is part of the checkout, not of what is installed.
"""

import sys
from pathlib import Path

# ``python -m`` puts the checkout first, but an installed package must come before it: only that is compiled. (With -P
# the caller has put the checkout first on purpose: see ``python_process``.)
if not sys.flags.safe_path and sys.path[:1] == [str(Path(__file__).parents[1])]:
    sys.path.append(sys.path.pop(0))
