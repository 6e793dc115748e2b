"""Faults that tests define, so that clients can be tested against them.

A test overrides methods of ``Faults``. The gate, the APIs (``faulty_apis.py``) and the handlers of a node call them at
every connection, request, append and answer, and produce the faults that they return. By default there are none.

faults.py       the places where a test can inject faults
faulty_gate.py  refuses connections
"""
