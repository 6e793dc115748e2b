"""The write function of a message version: see ``compiler``."""

from __future__ import annotations

from aioproducer.protocol.compiler import Compiled, Source
from aioproducer.protocol.schema import BYTES, STRING, UUID, Array, Fixed, Message, Sized, Struct, Wire

MOST_NUMBERS = 1000
"""In one element of a step: they are written in one go."""


def compile_writer(cls: type[Message], version: int) -> Compiled:
    """``write(m) -> parts``: the bytes of message ``m``, its records as buffers of their own."""
    return _compiled(_Writer(cls, version), "write", "m")


def compile_stepwise_writer(cls: type[Message], version: int) -> Compiled:
    """``write_steps(m, most)``, a generator that returns what ``write`` does, for large messages.

    It yields after every ``most`` elements of arrays.
    """
    return _compiled(_StepwiseWriter(cls, version), "write_steps", "m, most")


def _compiled(source: _Writer, name: str, parameters: str) -> Compiled:
    source.line("parts = []")
    source.line("out = bytearray()")
    source.begin()
    source.struct(source.cls, "m", "")
    source.line("if out or not parts: parts.append(bytes(out))")
    source.line("return parts")
    return source.compile(name, parameters)


class _Writer(Source):
    def begin(self) -> None:
        """What comes before the message."""

    def before_element(self) -> None:
        """What comes before each element of an array."""

    def numbers(self, element: Fixed, items: str) -> None:
        """An array of ``n`` elements of fixed size."""
        self.line(f"out += pack(f'>{{n}}{element.code}', *{items})")

    def refuse(self, condition: str) -> None:
        """Where the value is not what the version can carry."""
        ((field, _),) = self.about
        self.line(f"if {condition}: refuse_field({self.cls.__name__!r}, {self.version}, {field!r})")

    def length(self, flexible: bool, code: str) -> None:
        """The length or count ``n``, -1 for null."""
        if flexible:
            self.line("if n < 127: out.append(n + 1)")
            self.line("else: write_uvarint(out, n + 1)")
        else:
            self.line(f"out += {self.packing('pack', code)}(n)")

    def null_or(self, nullable: bool, target: str, flexible: bool, code: str) -> str:
        """Emits the null case. What follows belongs in the block that this returns."""
        if not nullable:
            self.line(f"if {target} is None: reject_length(-1, 0)")
            return "if True:"
        null = r"b'\x00'" if flexible else r"b'\xff\xff'" if code == "h" else r"b'\xff\xff\xff\xff'"
        self.line(f"if {target} is None: out += {null}")
        return "else:"

    def differs(self, wire: Wire, target: str) -> str:
        """An expression: whether the value is not the default."""
        if isinstance(wire.type, Array):
            return f"{target} or {target} is None"
        if isinstance(wire.type, type):
            inner = [self.differs(field, f"{target}.{field.name}") for field in wire.type.FIELDS]
            return " or ".join([*inner, f"{target}.unknown_tagged_fields"])
        if wire.default is None:
            return f"{target} is not None"
        return f"{target} != {self.literal(wire.default)}"

    def absent(self, wire: Wire, target: str) -> None:
        if not wire.ignorable:
            self.refuse(self.differs(wire, target))

    def fixed(self, types: list[Fixed], targets: list[str]) -> None:
        codes = "".join(type_.code for type_ in types)
        # Not its bytes: that is a property, so a call of Python.
        values = (f"{to}.int.to_bytes(16, 'big')" if of is UUID else to for of, to in zip(types, targets, strict=True))
        self.line(f"out += {self.packing('pack', codes)}({', '.join(values)})")

    def sized(self, type_: Sized, target: str, nullable: bool, flexible: bool) -> None:
        code = "h" if type_ is STRING else "i"
        with self.block(self.null_or(nullable, target, flexible, code)):
            if type_ is STRING:
                self.line(f"raw = {target}.encode(); n = len(raw)")
                self.line("if n > MAX_STRING_LENGTH: reject_length(n, n)")
            elif type_ is BYTES:
                self.line(f"raw = {target}; n = len(raw)")
            else:
                self.line(f"buffers, n = record_buffers({target})")
            self.length(flexible, code)
            if type_ in (STRING, BYTES):
                self.line("out += raw")
            else:
                self.line("parts.append(bytes(out)); parts += buffers; out = bytearray()")

    def array(self, element: Fixed | Sized | type[Struct], target: str, nullable: bool, path: str) -> None:
        items, item = self.variable("a"), self.variable("v")
        self.line(f"{items} = {target}")
        with self.block(self.null_or(nullable, items, self.flexible(), "i")):
            self.line(f"n = len({items})")
            self.length(self.flexible(), "i")
            if isinstance(element, Fixed) and element is not UUID:
                self.numbers(element, items)
                return
            with self.block(f"for {item} in {items}:"):
                self.before_element()
                if isinstance(element, type):
                    self.struct(element, item, path + "[].")
                elif isinstance(element, Fixed):
                    self.fixed([element], [item])
                else:
                    self.sized(element, item, False, self.flexible())

    def nested(self, cls: type[Struct], target: str, path: str) -> None:
        var = self.variable("s")
        self.line(f"{var} = {target}")
        self.struct(cls, var, path + ".")

    def tagged_fields(self, cls: type[Struct], tagged: list[Wire], var: str, path: str) -> None:
        if not self.flexible():
            self.refuse(f"{var}.unknown_tagged_fields")
            return
        here = self.about
        values, outer = self.variable("tagged"), self.variable("out")
        known = tuple(wire.tag for wire in cls.FIELDS if wire.tag is not None)
        self.line(f"{values} = {var}.unknown_tagged_fields")
        self.line(f"if {values}: {values} = own_tagged_fields({values}, {known})")
        for wire in tagged:
            with self.block(f"if {self.differs(wire, f'{var}.{wire.name}')}:"):
                self.line(f"{outer} = out; out = bytearray()")
                self.value(wire, f"{var}.{wire.name}", path + wire.name)
                self.line(f"{values} = {{**{values}, {wire.tag}: out}}; out = {outer}")
        self.about = here
        self.line(f"if {values}: write_tagged_fields(out, {values})")
        self.line("else: out.append(0)")


class _StepwiseWriter(_Writer):
    def begin(self) -> None:
        self.line("left = most")
        self.line("if left < 0: yield")  # so that it is a generator, even without an array

    def before_element(self) -> None:
        self.line("left -= 1")
        self.line("if left < 0: left = most; yield")

    def numbers(self, element: Fixed, items: str) -> None:
        start = self.variable("n")
        with self.block(f"for {start} in range(0, n, {MOST_NUMBERS}):"):
            self.before_element()
            self.line(f"some = {items}[{start} : {start} + {MOST_NUMBERS}]")
            self.line(f"out += pack(f'>{{len(some)}}{element.code}', *some)")
