"""Kafka's wire protocol: bytes to messages and back, without any I/O.

    primitives.py      varints and the checks every length goes through
    schema.py          how a message is declared: one dataclass for all of its versions
    messages/          the declarations, one file per API
    compiler.py        turns a declaration into flat functions, one pair per version (compile_*.py)
    codec.py           ``encode`` and ``decode``: runs those functions, and explains what they stumble over
    api_key.py         the numbers of Kafka's APIs
    api_keys.py        which of them are spoken here, with their messages and versions
    headers.py         what stands before every request and every response
    framing.py         whole frames: a size, a header, a message
    frame_reader.py    a byte stream cut into frames
    produce_answer.py  reads answers to Produce, of which there are many; with big_endian.py, which reads numbers

Adding a message
    1. Find ``common/message/<Name>Request.json`` and ``<Name>Response.json`` inside the kafka-clients jar.
    2. Write ``messages/<name>.py`` in the manner of its neighbours: inner structs first, field by field in the order
       and under the names of the specification (``ThrottleTimeMs`` becomes ``throttle_time_ms``).
    3. Add it to ``APIS`` in ``api_keys.py``.

    Nothing else: the tests find every message in ``APIS``, compare it with Kafka's specification, and send random
    values of every version through it.
"""
