"""Works, the tasks that clients are given: each work is data, and a run does one work once.

works.py        the works of the comparison
curve_works.py  the works along the axes of ``curves``
line_works.py   the works of ``lines``
ways.py         how records are handed over: by tasks, or at a pace
payload.py      the values of the records
run.py          one run as a worker is told it, and its answer
"""
