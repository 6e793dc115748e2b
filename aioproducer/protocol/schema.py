"""Declares messages: one dataclass for all versions of a message.

    @struct
    class PartitionProduceData(Struct):
        index: int = int32("0+")
        records: Records = records_("0+", nullable="0+")

    @message(ApiKey.PRODUCE, versions="3-13", flexible="9+")
    class ProduceRequest(Request):
        acks: int = int16("0+")
        topic_data: list[TopicProduceData] = array(TopicProduceData, "0+")

Every field names the versions that have it, in Kafka's notation: ``"3+"``, ``"0-12"``, ``"6"``. More can be said:

    ``nullable``   the versions in which it may be null
    ``default``    its value when a version lacks it, and in a message just made; without it Kafka's: 0, false, an empty
                   string or array, the zero UUID, null records
    ``ignorable``  a value other than the default may be dropped silently when a version lacks the field; otherwise
                   encoding it raises ``UnsupportedVersionException``
    ``tag``        the field travels as a tagged field of this number, in the versions of ``tagged`` (or all of its
                   own), and is left out while it has its default
    ``flexible``   overrides the message's flexible versions for this field (only the header's client id needs it)

Instances are plain slotted dataclasses without a version of their own; ``codec`` reads and writes them in any.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, NoReturn, TypeVar, dataclass_transform

from aioproducer.protocol.api_key import ApiKey
from aioproducer.protocol.primitives import ZERO_UUID, Buffer

Records = Buffer | list[Buffer] | tuple[Buffer, ...] | None
"""Record batches as they are on the wire: one buffer or several in a row. Decoding gives one memoryview, or None."""


class _NoTaggedFields(dict[int, bytes]):
    """Empty, and it stays so: nearly every struct has no unknown tagged field, and all of those share this one."""

    def _refuse(self, *_: object, **__: object) -> NoReturn:
        raise TypeError("this empty mapping is shared by all structs: assign a dict of your own")

    __setitem__ = setdefault = update = __ior__ = _refuse
    __hash__ = object.__hash__  # type: ignore[assignment]  # the default of a dataclass's field must have one

    def __reduce__(self) -> str:
        return "NO_TAGGED_FIELDS"


NO_TAGGED_FIELDS: Mapping[int, bytes] = _NoTaggedFields()

_NEWEST = 0x7FFF


class Versions(NamedTuple):
    """A range of versions, both ends included; empty when ``high`` is below ``low``."""

    low: int
    high: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        """``"3+"``, ``"0-12"``, ``"6"`` or ``"none"``, as Kafka's specifications write them."""
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), _NEWEST)
        low, _, high = text.partition("-")
        return cls(int(low), int(high or low))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.low <= version <= self.high

    def __str__(self) -> str:
        if self.high < self.low:
            return "none"
        if self.high == _NEWEST:
            return f"{self.low}+"
        return f"{self.low}-{self.high}" if self.low != self.high else str(self.low)


class Fixed(NamedTuple):
    """A type of fixed size; ``code`` is its letter in ``struct``'s language."""

    name: str
    code: str
    size: int


class Sized(NamedTuple):
    """A type that is written as a length and as many bytes: string, bytes, records."""

    name: str


class Array(NamedTuple):
    """A count and as many elements."""

    element: Fixed | Sized | type[Struct]


INT8 = Fixed("int8", "b", 1)
INT16 = Fixed("int16", "h", 2)
INT32 = Fixed("int32", "i", 4)
INT64 = Fixed("int64", "q", 8)
UINT16 = Fixed("uint16", "H", 2)
UINT32 = Fixed("uint32", "I", 4)
FLOAT64 = Fixed("float64", "d", 8)
BOOL = Fixed("bool", "?", 1)
UUID = Fixed("uuid", "16s", 16)
STRING = Sized("string")
BYTES = Sized("bytes")
RECORDS = Sized("records")


class Wire(NamedTuple):
    """What a declaration says about one field."""

    name: str
    type: Type
    versions: Versions
    nullable: Versions
    default: Any
    """Arrays and structs: ``None``, and it means a new empty one."""
    tag: int | None
    tagged: Versions
    ignorable: bool
    flexible: Versions | None
    secret: bool = False
    """Not for logs."""


@dataclass(slots=True, eq=False, repr=False)
class Struct:
    """The base of all declared structs; ``FIELDS`` lists their declarations in wire order.

    What dataclasses would generate for each of them is written once here where it is not for speed: generating is most
    of what it takes to import the messages.
    """

    FIELDS: ClassVar[tuple[Wire, ...]] = ()

    unknown_tagged_fields: Mapping[int, bytes] = field(default=NO_TAGGED_FIELDS, kw_only=True, repr=False)
    """Tagged fields that the declaration does not know, by tag: kept when read, written back in flexible versions."""

    def __eq__(self, other: object) -> bool:
        if other.__class__ is not self.__class__:
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in fields(self))

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
        return f"{type(self).__qualname__}({shown})"


class Message(Struct):
    """A struct that is read and written by itself."""

    __slots__ = ()

    VALID_VERSIONS: ClassVar[Versions]
    """The versions that can be encoded and decoded."""
    FLEXIBLE_VERSIONS: ClassVar[Versions]
    """The versions with compact lengths and tagged fields (KIP-482)."""


class ApiMessage(Message):
    """A request or a response."""

    __slots__ = ()

    API_KEY: ClassVar[ApiKey]
    MIN_VERSION: ClassVar[int]
    MAX_VERSION: ClassVar[int]
    """The newest version to offer and accept: the last of ``VALID_VERSIONS``, or the one before it while Kafka calls
    the last one unstable (``latestVersionUnstable``): only test clusters speak that."""
    FLEXIBLE_VERSION: ClassVar[int]


class Request(ApiMessage):
    """What a client sends."""

    __slots__ = ()


class Response(ApiMessage):
    """What a broker answers, in the version of the request."""

    __slots__ = ()


Type = Fixed | Sized | Array | type[Struct]

S = TypeVar("S", bound=Struct)
M = TypeVar("M", bound=Message)
A = TypeVar("A", bound=ApiMessage)


@dataclass_transform()
def struct(cls: type[S]) -> type[S]:
    """Makes a declared class what it says: a slotted dataclass with its ``FIELDS``."""
    cls.__doc__ = cls.__doc__ or cls.__name__  # else dataclasses would work out a signature to say
    made = dataclass(slots=True, eq=False, repr=False)(cls)
    made.FIELDS = tuple(f.metadata["wire"]._replace(name=f.name) for f in fields(made) if "wire" in f.metadata)
    return made


@dataclass_transform()
def header(*, versions: str, flexible: str) -> Callable[[type[M]], type[M]]:
    """A message that belongs to no single API: the request and the response header."""

    def declare(cls: type[M]) -> type[M]:
        made = struct(cls)
        made.VALID_VERSIONS = Versions.parse(versions)
        made.FLEXIBLE_VERSIONS = Versions.parse(flexible)
        return made

    return declare


@dataclass_transform()
def message(
    api_key: ApiKey, *, versions: str, flexible: str, latest_version_unstable: bool = False
) -> Callable[[type[A]], type[A]]:
    """A request or a response of the API ``api_key``."""

    def declare(cls: type[A]) -> type[A]:
        made = header(versions=versions, flexible=flexible)(cls)
        made.API_KEY = api_key
        made.MIN_VERSION = made.VALID_VERSIONS.low
        made.MAX_VERSION = made.VALID_VERSIONS.high - latest_version_unstable
        made.FLEXIBLE_VERSION = made.FLEXIBLE_VERSIONS.low
        return made

    return declare


def _declare(
    type_: Type,
    versions: str,
    default: Any,
    *,
    nullable: str = "none",
    tag: int | None = None,
    tagged: str | None = None,
    ignorable: bool = False,
    flexible: str | None = None,
    secret: bool = False,
) -> Any:
    if tag is None:
        tagged = "none"
    elif type_ is RECORDS:
        raise TypeError("records stay buffers of their own, which a tagged field cannot hold")
    wire = Wire(
        name="",
        type=type_,
        versions=Versions.parse(versions),
        nullable=Versions.parse(nullable),
        default=default,
        tag=tag,
        tagged=Versions.parse(tagged or versions),
        ignorable=ignorable,
        flexible=None if flexible is None else Versions.parse(flexible),
        secret=secret,
    )
    metadata = {"wire": wire}
    if isinstance(type_, Array):
        return field(default_factory=list, metadata=metadata)
    if isinstance(type_, type):
        return field(default_factory=type_, metadata=metadata)
    return field(default=default, metadata=metadata, repr=type_ is not RECORDS and not secret)


def int8(versions: str, *, default: int = 0, **more: Any) -> Any:
    return _declare(INT8, versions, default, **more)


def int16(versions: str, *, default: int = 0, **more: Any) -> Any:
    return _declare(INT16, versions, default, **more)


def int32(versions: str, *, default: int = 0, **more: Any) -> Any:
    return _declare(INT32, versions, default, **more)


def int64(versions: str, *, default: int = 0, **more: Any) -> Any:
    return _declare(INT64, versions, default, **more)


def uint16(versions: str, *, default: int = 0, **more: Any) -> Any:
    return _declare(UINT16, versions, default, **more)


def uint32(versions: str, *, default: int = 0, **more: Any) -> Any:
    return _declare(UINT32, versions, default, **more)


def float64(versions: str, *, default: float = 0.0, **more: Any) -> Any:
    return _declare(FLOAT64, versions, default, **more)


def bool_(versions: str, *, default: bool = False, **more: Any) -> Any:
    return _declare(BOOL, versions, default, **more)


def uuid(versions: str, **more: Any) -> Any:
    return _declare(UUID, versions, ZERO_UUID, **more)


def string(versions: str, *, default: str | None = "", **more: Any) -> Any:
    return _declare(STRING, versions, default, **more)


def bytes_(versions: str, *, default: bytes | None = b"", **more: Any) -> Any:
    return _declare(BYTES, versions, default, **more)


def secret_bytes(versions: str, **more: Any) -> Any:
    """Bytes that no ``repr`` and no log may show."""
    return _declare(BYTES, versions, b"", secret=True, **more)


def records_(versions: str, **more: Any) -> Any:
    return _declare(RECORDS, versions, None, **more)


def array(element: Fixed | Sized | type[Struct], versions: str, **more: Any) -> Any:
    return _declare(Array(element), versions, None, **more)


def nested(type_: type[Struct], versions: str, **more: Any) -> Any:
    return _declare(type_, versions, None, **more)
