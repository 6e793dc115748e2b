"""Classes of messages as protoc would generate them, from ``shop/customer.proto`` and ``shop/order.proto``."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("google.protobuf", reason="protobuf is not installed")

from google.protobuf import descriptor_pool, message_factory, timestamp_pb2
from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

_STRING, _INT64, _MESSAGE = (
    FieldDescriptorProto.TYPE_STRING,
    FieldDescriptorProto.TYPE_INT64,
    FieldDescriptorProto.TYPE_MESSAGE,
)


def _message(name: str, *fields: tuple[str, int, str | None], nested: DescriptorProto | None = None) -> DescriptorProto:
    made = DescriptorProto(name=name, nested_type=[] if nested is None else [nested])
    for number, (field, kind, of) in enumerate(fields, 1):
        made.field.add(name=field, number=number, type=kind, type_name=of, label=FieldDescriptorProto.LABEL_OPTIONAL)
    return made


CUSTOMER_FILE = FileDescriptorProto(
    name="shop/customer.proto",
    package="shop",
    syntax="proto3",
    message_type=[_message("Customer", ("name", _STRING, None))],
)
ORDER_FILE = FileDescriptorProto(
    name="shop/order.proto",
    package="shop",
    syntax="proto3",
    dependency=["shop/customer.proto", "google/protobuf/timestamp.proto"],
    message_type=[
        _message("Unused"),
        _message(
            "Order",
            ("number", _INT64, None),
            ("customer", _MESSAGE, ".shop.Customer"),
            ("at", _MESSAGE, ".google.protobuf.Timestamp"),
            nested=_message("Line", ("sku", _STRING, None)),
        ),
    ],
)

_POOL = descriptor_pool.DescriptorPool()
_POOL.AddSerializedFile(timestamp_pb2.DESCRIPTOR.serialized_pb)
_POOL.AddSerializedFile(CUSTOMER_FILE.SerializeToString())
_POOL.AddSerializedFile(ORDER_FILE.SerializeToString())


def _class(name: str) -> Any:
    return message_factory.GetMessageClass(_POOL.FindMessageTypeByName(name))


Customer, Order, Line = map(_class, ("shop.Customer", "shop.Order", "shop.Order.Line"))
