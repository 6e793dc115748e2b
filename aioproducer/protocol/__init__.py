"""Kafka's wire protocol: bytes to messages and back, without any I/O.

    primitives.py      varints, and the checks of every length
    schema.py          how a message is declared: one dataclass for all its versions
    messages/          the declarations, one file per API
    compiler.py        compiles a declaration to flat functions, a pair for each version
    compile_reader.py, compile_writer.py
                       the source text of those functions
    codec.py           ``encode`` and ``decode``: call those functions, and explain where one fails
    api_key.py         the numbers of Kafka's APIs
    api_keys.py        the supported APIs, with their messages and versions
    headers.py         the headers of requests and responses
    framing.py         whole frames: a size, a header, a message
    frame_reader.py    cuts a byte stream into frames
    produce_answer.py  a faster reader for the many answers to Produce
    big_endian.py      reads numbers
    text_check.py      refuses texts of users that no request can have

Adding a message
    1. Find ``common/message/<Name>Request.json`` and ``<Name>Response.json`` inside the kafka-clients jar.
    2. Write ``messages/<name>.py`` like its neighbours: inner structs first, field by field in the order
       and under the names of the specification (``ThrottleTimeMs`` becomes ``throttle_time_ms``).
    3. Add it to ``APIS`` in ``api_keys.py``.

    That is all: the tests find every message in ``APIS``, compare it with Kafka's specification, and encode and decode
    random values in every version.
"""
