"""The read function of a message version: see ``compiler``."""

from __future__ import annotations

from aioproducer.protocol.compiler import Compiled, Source, minimum_size
from aioproducer.protocol.schema import BYTES, STRING, UUID, Array, Fixed, Message, Sized, Struct, Type, Wire
from aioproducer.protocol.text_check import MAX_STRING_LENGTH

MOST_NUMBERS = 1000
"""In a step: they are read in one go."""


def compile_reader(cls: type[Message], version: int) -> Compiled:
    """``read(data, pos, left) -> (message, pos)``: the message that starts at ``pos``, and where it ends.

    It may have ``left`` elements in all its arrays together.
    """
    return _compiled(_Reader(cls, version), "read", "data, pos, left")


def compile_stepwise_reader(cls: type[Message], version: int) -> Compiled:
    """``read_steps(data, pos, left, pause)``, a generator that returns what ``read`` does, for large messages.

    It yields where it is as soon as it comes to an element of an array behind ``pause``, and is sent the next pause.
    """
    return _compiled(_StepwiseReader(cls, version), "read_steps", "data, pos, left, pause")


def _compiled(source: _Reader, name: str, parameters: str) -> Compiled:
    source.line("size = len(data)")
    source.line("view = memoryview(data)")
    source.new("m", source.cls)
    source.struct(source.cls, "m", "")
    source.before_element()  # so that it is a generator, even without an array
    source.line("return m, pos")
    return source.compile(name, parameters)


class _Reader(Source):
    def before_element(self) -> None:
        """What comes before each element of an array."""

    def numbers(self, element: Fixed, target: str) -> None:
        """An array of ``n`` elements of fixed size."""
        self.line(f"{target} = list(unpack_from(f'>{{n}}{element.code}', data, pos)); pos += n * {element.size}")

    def new(self, target: str, cls: type[Struct]) -> None:
        self.line(f"{target} = new({self.constant(cls.__name__, cls)})")

    def uvarint(self, var: str) -> None:
        self.line(f"{var} = data[pos]; pos += 1")
        self.line(f"if {var} > 127: {var}, pos = read_uvarint(data, pos - 1)")

    def length(self, flexible: bool, code: str) -> None:
        """The length or count that comes next, into ``n``; null is -1."""
        if flexible:
            self.uvarint("n")
            self.line("n -= 1")
        else:
            self.line(f"n = {self.packing('unpack_from', code)}(data, pos)[0]; pos += {4 if code == 'i' else 2}")

    def checked(self, nullable: bool, target: str, least: int, limit: int | None = None) -> str:
        """Emits the check of ``n``, and the null case. What follows belongs in the block that this returns."""
        bounds = f"0 <= n <= {limit}" if limit else "n >= 0"
        test = f"if n * {least} > size - pos or not {bounds}: reject_length(n, size - pos, {least})"
        if nullable:
            self.line(f"if n == -1: {target} = None")
            self.line(f"el{test}")
            return "else:"
        self.line(test)
        return "if True:"

    def default(self, wire: Wire, target: str) -> None:
        if isinstance(wire.type, Array):
            self.line(f"{target} = []")
        elif isinstance(wire.type, type):
            var = self.variable("s")
            self.new(f"{var} = {target}", wire.type)
            for inner in wire.type.FIELDS:
                self.default(inner, f"{var}.{inner.name}")
            self.line(f"{var}.unknown_tagged_fields = NO_TAGGED_FIELDS")
        else:
            self.line(f"{target} = {self.literal(wire.default)}")

    def absent(self, wire: Wire, target: str) -> None:
        self.default(wire, target)

    def fixed(self, types: list[Fixed], targets: list[str]) -> None:
        codes = "".join(type_.code for type_ in types)
        landing = [self.variable("u") if type_ is UUID else to for type_, to in zip(types, targets, strict=True)]
        self.line(f"{', '.join(landing)}, = {self.packing('unpack_from', codes)}(data, pos)")
        self.line(f"pos += {sum(type_.size for type_ in types)}")
        for type_, raw, target in zip(types, landing, targets, strict=True):
            if type_ is UUID:
                self.line(f"{target} = to_uuid({raw})")

    def sized(self, type_: Sized, target: str, nullable: bool, flexible: bool) -> None:
        self.length(flexible, "h" if type_ is STRING else "i")
        rest = self.checked(nullable, target, 1, MAX_STRING_LENGTH if type_ is STRING else None)
        with self.block(rest):
            self.line("end = pos + n")
            if type_ is STRING:
                self.line(f"{target} = str(data[pos:end], 'utf-8')")
            elif type_ is BYTES:
                self.line(f"{target} = bytes(data[pos:end])")
            else:
                self.line(f"{target} = view[pos:end]")
            self.line("pos = end")

    def array(self, element: Fixed | Sized | type[Struct], target: str, nullable: bool, path: str) -> None:
        self.length(self.flexible(), "i")
        # A struct of no bytes would make any count possible: as Kafka, one byte each is the least.
        rest = self.checked(nullable, target, max(1, minimum_size(element, self.version, self.flexible())))
        with self.block(rest):
            self.line("left -= n")
            self.line("if left < 0: reject_elements()")
            if isinstance(element, Fixed) and element is not UUID:
                self.numbers(element, target)
                return
            items, item = self.variable("a"), self.variable("v")
            self.line(f"{items} = {target} = []")
            with self.block("for _ in range(n):"):
                self.before_element()
                self.element(element, item, path + "[]")
                self.line(f"{items}.append({item})")

    def element(self, element: Type, item: str, path: str) -> None:
        if isinstance(element, type):
            self.new(item, element)
            self.struct(element, item, path + ".")
        elif isinstance(element, Fixed):
            self.fixed([element], [item])
        elif isinstance(element, Sized):
            self.sized(element, item, False, self.flexible())

    def nested(self, cls: type[Struct], target: str, path: str) -> None:
        var = self.variable("s")
        self.new(f"{var} = {target}", cls)
        self.struct(cls, var, path + ".")

    def tagged_fields(self, cls: type[Struct], tagged: list[Wire], var: str, path: str) -> None:
        for wire in tagged:
            self.default(wire, f"{var}.{wire.name}")
        self.line(f"{var}.unknown_tagged_fields = NO_TAGGED_FIELDS")
        if not self.flexible():
            return
        here = self.about
        tag, last, end, unknown = (self.variable(name) for name in ("tag", "last", "end", "unknown"))
        known = sorted(wire.tag for wire in cls.FIELDS if wire.tag is not None)
        self.uvarint("n")
        with self.block("if n:"):
            self.line("if n * 2 > size - pos: reject_length(n, size - pos, 2)")
            self.line("if n > MAX_TAGGED_FIELDS: reject_tags(n)")
            self.line(f"{last} = -1; {unknown} = {{}}")
            with self.block("for _ in range(n):"):
                self.uvarint(tag)
                self.line(f"if {tag} <= {last}: reject_tag({tag}, {last})")
                self.line(f"{last} = {tag}")
                self.uvarint("n")
                self.line("if n > size - pos: reject_length(n, size - pos)")
                self.line(f"{end} = pos + n")
                for wire in tagged:
                    with self.block(f"if {tag} == {wire.tag}:"):
                        self.value(wire, f"{var}.{wire.name}", path + wire.name)
                        self.line(f"if pos != {end}: reject_end(pos, {end})")
                        self.line("continue")
                self.about = here
                if known:
                    # As in Kafka's generated readers: a tag declared for other versions is no unknown field.
                    self.line(f"if {tag} in {tuple(known)}: reject_tag({tag}, -1)")
                self.line(f"{unknown}[{tag}] = bytes(data[pos:{end}]); pos = {end}")
            self.line(f"if {unknown}: {var}.unknown_tagged_fields = {unknown}")


class _StepwiseReader(_Reader):
    def before_element(self) -> None:
        self.line("if pos > pause: pause = yield pos")

    def numbers(self, element: Fixed, target: str) -> None:
        items, left = self.variable("a"), self.variable("n")
        self.line(f"{items} = {target} = []; {left} = n")
        with self.block(f"while {left} > 0:"):
            self.before_element()
            self.line(f"n = min({left}, {MOST_NUMBERS}); {left} -= n")
            self.line(f"{items} += unpack_from(f'>{{n}}{element.code}', data, pos); pos += n * {element.size}")
