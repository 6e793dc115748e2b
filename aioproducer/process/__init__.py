"""The process that the package runs in.

descriptors.py   its file descriptors: how many there are, and the last ones, which are for files
event_loop.py    the event loop of commands and threads
"""
