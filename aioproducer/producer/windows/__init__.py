"""Limits on what is under way at once.

    an answer announces what the broker remembers → in_flight_windows → drain
    a request takes too long                      → line_limit        → drain
    requests end their connections                → frame_limit       → drain
    answers take long, for the work               → line_window       → dispatcher
    … so long that the last would be late         → timely_window     → dispatcher
    answers show a fast line                      → send_buffer       → connection

    in_flight_windows.py   how many batches of a partition (KIP-1269)
    frame_limit.py         how many bytes a broker takes in one request
    line_limit.py          how many bytes over a slow line, so that requests cross it before their time-out
    line_window.py         how many requests to a node, while more of them would make batches small
    timely_window.py       how many requests to a node, so that each is answered before its time-out
    send_buffer.py         how many bytes the system holds for a connection
    node_line.py           the last five, for each node

No module here imports asyncio.
"""
