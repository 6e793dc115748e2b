"""Run by test_formats.py in a process of its own: executes the blocks of docs/spark.md about Avro and Protobuf.

Arguments: the bootstrap servers, the directory with the jars, one for Spark's own files, and the document. Prints the
rows that it has read back, as JSON.
"""

from __future__ import annotations

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql import functions as F
from pyspark.sql.avro.functions import from_avro

servers, libs, scratch, document = sys.argv[1:]
os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
INT64, STRING = 3, 9


def field(number: int, *content: bytes | str) -> bytes:
    """A field of a message in Protobuf's format, which contains text or messages."""
    data = b"".join(part.encode() if isinstance(part, str) else part for part in content)
    return bytes([number << 3 | 2, len(data)]) + data


def described_field(number: int, name: str, kind: int) -> bytes:
    """An optional field of a described message, as a FieldDescriptorProto."""
    return field(2, field(1, name), bytes([3 << 3, number, 4 << 3, 1, 5 << 3, kind]))


order = field(4, field(1, "Order"), described_field(1, "id", INT64), described_field(2, "item", STRING))
described = b"".join((field(1, "orders.proto"), order, field(12, "proto3")))
Path(scratch, "orders_pb2.py").write_text(
    f"""
from google.protobuf import descriptor_pool, message_factory

file = descriptor_pool.DescriptorPool().AddSerializedFile(bytes.fromhex("{described.hex()}"))
Order = message_factory.GetMessageClass(file.message_types_by_name["Order"])
"""
)
schema = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": "id", "type": "long"}, {"name": "item", "type": "string"}],
    }
)
session = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", ",".join(map(str, sorted(Path(libs).glob("*.jar")))))
    .config("spark.ui.enabled", False)
    .config("spark.driver.memory", "512m")
    .config("spark.driver.extraJavaOptions", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")
    .config("spark.sql.codegen.wholeStage", False)
    .config("spark.driver.host", "127.0.0.1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.local.dir", scratch)
    .config("spark.sql.warehouse.dir", f"{scratch}/warehouse")
    .getOrCreate()
)
session.sparkContext.setLogLevel("ERROR")
session.sparkContext.addPyFile(f"{scratch}/orders_pb2.py")
options = {"kafka.bootstrap.servers": servers}
names: dict[str, Any] = {
    "F": F,
    "df": session.range(3).selectExpr("id", "concat('item ', id) AS item"),
    "options": {**options, "subscribe": "framed"},
    "schema": schema,
    "schema_id": 258,
    "spark": session,
}
blocks = re.findall(r"```py\n(.*?)```", Path(document).read_text(encoding="utf-8"), re.DOTALL)
for block in blocks:
    exec(block, names)

for topic in ("avro", "protobuf", "framed"):
    names[topic].write.format("aioproducer").options(**options, topic=topic).mode("append").save()
read = session.read.format("aioproducer").options(**options, subscribe="avro").load()
of_protobuf = session.read.format("aioproducer").options(**options, subscribe="protobuf").load()
of_serializer = session.read.format("aioproducer").options(**options, subscribe="serialized").load()
payload = F.substring("value", 6, 2**31 - 1)
frames = {
    "avro": read.select(from_avro("value", schema).alias("order")).select("order.*"),
    "protobuf": of_protobuf.select("value").mapInArrow(names["parsed"], "id long, item string"),
    "framed": names["unframed"].select("order.*"),
    "serialized": of_serializer.select(from_avro(payload, schema).alias("order")).select("order.*"),
}
found = {name: sorted(list(row) for row in frame.collect()) for name, frame in frames.items()}
heads = names["read"].selectExpr("hex(substring(value, 1, 5)) AS head").distinct()
found["heads"] = [row.head for row in heads.collect()]
sys.stdout.write(f"JSON {json.dumps(found)}\n")
session.stop()
