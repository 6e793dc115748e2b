"""A campaign: Spark writes exactly once on a standalone cluster, while its processes are killed and its jobs cancelled.

``python -m tests.spark.campaign`` runs it. Read in this order: ``plan.py`` (what is interrupted and when),
``standalone.py`` (Spark's cluster), ``driver.py`` (a user's program, in a process of its own), ``driver_process.py``
(that process, seen from here), ``interrupter.py`` (how each interruption is made), ``campaign.py`` and ``report.py``.
"""
