"""Faults on purpose, as tests define them.

faults.py       where they strike
faulty_gate.py  connections that they refuse
"""
