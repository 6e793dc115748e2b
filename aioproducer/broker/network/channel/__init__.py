"""One connection of a client: from bytes to requests, and what bounds its time and memory.

kafka_channel.py        the connection
channel_mute_state.py   why it is not read
memory_pool.py          how much memory requests may take
unread_responses.py     how much memory responses may take that clients do not read
receive_deadlines.py    closes connections that send too slowly
idle_expiry.py          closes those that are idle
"""
