"""Limits on what is under way at once.

    an answer announces what the broker remembers → in_flight_windows → drain
    a request takes too long                      → line_limit        → drain

    in_flight_windows.py   how many batches of a partition (KIP-1269)
    line_limit.py          how many bytes over a slow line, so that requests cross it before their time-out

No module here imports asyncio.
"""
