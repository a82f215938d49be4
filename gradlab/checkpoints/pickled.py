"""A pickle read as data: nothing that it names is imported, and nothing that it asks for is called.

The opcodes are interpreted here, on plain Python containers. A global is its name, and a call or an
instance is an inert ``Stub``, unless the name is in the reader's own table of constructors.
"""

from __future__ import annotations

import codecs
import pickletools
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedIOBase
from typing import IO, Any, TypeAlias, cast

from gradlab.checkpoints.archive import spoken
from gradlab.errors import ModelFileError

Constructors: TypeAlias = Mapping[str, Callable[..., Any]]

# A file that names one of these is not a model. It is refused whole, though nothing would run.
HOSTILE_MODULES = frozenset(
    "os posix nt subprocess sys pty runpy shutil socket importlib ctypes commands pdb code "
    "webbrowser".split()
)
HOSTILE_BUILTINS = frozenset("eval exec execfile compile __import__ open breakpoint input".split())
BUILTIN_MODULES = ("builtins", "__builtin__", "io", "_io")

LITERALS = frozenset(
    "INT BININT BININT1 BININT2 LONG LONG1 LONG4 FLOAT BINFLOAT STRING BINSTRING SHORT_BINSTRING "
    "BINBYTES SHORT_BINBYTES BINBYTES8 BYTEARRAY8 UNICODE SHORT_BINUNICODE BINUNICODE "
    "BINUNICODE8".split()
)
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
TUPLES = {"EMPTY_TUPLE": 0, "TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
MEMO_READS = frozenset(("GET", "BINGET", "LONG_BINGET"))
MEMO_WRITES = frozenset(("PUT", "BINPUT", "LONG_BINPUT"))
IGNORED = frozenset(("PROTO", "FRAME", "STOP"))
OPCODES = {opcode.code.encode("latin-1"): opcode for opcode in pickletools.opcodes}
DETOURS = ("copyreg._reconstructor", "copy_reg._reconstructor", "copyreg.__newobj__")


@dataclass(frozen=True, slots=True, eq=False)
class Global:
    """The name of a class or function, as the pickle spells it."""

    name: str


@dataclass(slots=True, eq=False, repr=False)
class Stub:
    """What stands for an object that gradlab does not build: its class or function by name."""

    name: str
    arguments: tuple[object, ...] = ()
    state: object = None
    items: dict[object, object] = field(default_factory=dict)


def read_pickle(
    stream: BufferedIOBase,
    constructors: Constructors,
    persistent: Callable[[object], object] | None = None,
) -> object:
    """Object described by the pickle at the stream's position.

    Parameters
    ----------
    stream
        Left just behind the pickle's end.
    constructors
        Allow-list: what to call, with the pickle's arguments, for a global of that name.
    persistent
        Object for a persistent identifier; pickles that hold one are refused if None.

    Returns
    -------
    described
        Dictionaries, lists, tuples, numbers, text, what the constructors made, and stubs. Sets are
        lists, and a dictionary key that is not a number or text is an opaque object.

    Raises
    ------
    ModelFileError
        If the pickle names something that runs commands. Other exceptions come from damaged bytes.
    """
    return _Machine(constructors, persistent).run(stream)


class _Machine:
    """Stack, marks and memo of the pickle language."""

    def __init__(
        self, constructors: Constructors, persistent: Callable[[object], object] | None
    ) -> None:
        self.constructors = constructors
        self.persistent = persistent
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: dict[object, Any] = {}

    def run(self, stream: BufferedIOBase) -> object:
        for name, argument in _operations(stream):
            self.execute(name, argument)
        return self.stack.pop()

    def execute(self, name: str, argument: object) -> None:
        if name in LITERALS:
            self.stack.append(argument)
        elif name in CONSTANTS:
            self.stack.append(CONSTANTS[name])
        elif name in TUPLES:
            self.stack.append(tuple(self.take(TUPLES[name])))
        elif name in MEMO_WRITES:
            self.memo[argument] = self.stack[-1]
        elif name in MEMO_READS:
            self.stack.append(self.memo[argument])
        elif name not in IGNORED:
            OPERATIONS[name](self, argument)

    def take(self, count: int) -> list[Any]:
        """Pop the topmost entries, the lowest first."""
        if count > len(self.stack):
            raise IndexError("the pickle takes more from its stack than is there")
        start = len(self.stack) - count
        taken = self.stack[start:]
        del self.stack[start:]
        return taken

    def take_marked(self) -> list[Any]:
        """Pop everything above the last mark."""
        return self.take(len(self.stack) - self.marks.pop())

    def mark(self, _: object) -> None:
        self.marks.append(len(self.stack))

    def pop(self, _: object) -> None:
        if self.marks and self.marks[-1] == len(self.stack):
            self.marks.pop()
        else:
            self.stack.pop()

    def pop_marked(self, _: object) -> None:
        self.take_marked()

    def duplicate(self, _: object) -> None:
        self.stack.append(self.stack[-1])

    def memoize(self, _: object) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def empty_list(self, _: object) -> None:
        self.stack.append([])

    def empty_dict(self, _: object) -> None:
        self.stack.append({})

    def marked_list(self, _: object) -> None:
        self.stack.append(self.take_marked())

    def marked_tuple(self, _: object) -> None:
        self.stack.append(tuple(self.take_marked()))

    def marked_dict(self, _: object) -> None:
        items = self.take_marked()
        self.stack.append({})
        self.fill(items)

    def append(self, _: object) -> None:
        self.extend(self.take(1))

    def appends(self, _: object) -> None:
        self.extend(self.take_marked())

    def set_item(self, _: object) -> None:
        self.fill(self.take(2))

    def set_items(self, _: object) -> None:
        self.fill(self.take_marked())

    def extend(self, items: list[Any]) -> None:
        if isinstance(self.stack[-1], list):
            self.stack[-1].extend(items)

    def fill(self, items: list[Any]) -> None:
        target = self.stack[-1]
        mapping = target.items if isinstance(target, Stub) else target
        if isinstance(mapping, dict):
            mapping.update(
                (_key(key), value) for key, value in zip(items[::2], items[1::2], strict=True)
            )

    def global_name(self, argument: object) -> None:
        self.stack.append(_named(*str(argument).split(" ", 1)))

    def stack_global(self, _: object) -> None:
        self.stack.append(_named(*self.take(2)))

    def reduce(self, _: object) -> None:
        function, arguments = self.take(2)
        self.call(function, arguments)

    def new_object_with_keywords(self, _: object) -> None:
        function, arguments, _keywords = self.take(3)
        self.call(function, arguments)

    def instance(self, argument: object) -> None:
        self.call(_named(*str(argument).split(" ", 1)), self.take_marked())

    def object_of_class(self, _: object) -> None:
        function, *arguments = self.take_marked()
        self.call(function, arguments)

    def call(self, function: object, arguments: Iterable[object]) -> None:
        """Push what the allow-list makes of a call, else a stub; the pickle's own never runs."""
        name = function.name if isinstance(function, Global | Stub) else type(function).__name__
        construct = self.constructors.get(name) if isinstance(function, Global) else None
        self.stack.append(_stub(name, arguments) if construct is None else construct(*arguments))

    def build(self, _: object) -> None:
        state = self.stack.pop()
        if isinstance(self.stack[-1], Stub):
            self.stack[-1].state = state

    def persistent_text(self, argument: object) -> None:
        self.stack.append(self.resolve(argument))

    def persistent_object(self, _: object) -> None:
        self.stack.append(self.resolve(self.stack.pop()))

    def resolve(self, identifier: object) -> object:
        if self.persistent is None:
            raise ModelFileError("the pickle refers to data outside itself: expected none here")
        return self.persistent(identifier)

    def refuse(self, argument: object) -> None:
        raise ModelFileError(
            "the pickle uses an extension registry or outside buffers: expected neither in a model"
        )


OPERATIONS: Mapping[str, Callable[[_Machine, object], None]] = {
    "MARK": _Machine.mark,
    "POP": _Machine.pop,
    "POP_MARK": _Machine.pop_marked,
    "DUP": _Machine.duplicate,
    "MEMOIZE": _Machine.memoize,
    "EMPTY_LIST": _Machine.empty_list,
    "EMPTY_SET": _Machine.empty_list,
    "EMPTY_DICT": _Machine.empty_dict,
    "LIST": _Machine.marked_list,
    "FROZENSET": _Machine.marked_list,
    "TUPLE": _Machine.marked_tuple,
    "DICT": _Machine.marked_dict,
    "APPEND": _Machine.append,
    "APPENDS": _Machine.appends,
    "ADDITEMS": _Machine.appends,
    "SETITEM": _Machine.set_item,
    "SETITEMS": _Machine.set_items,
    "GLOBAL": _Machine.global_name,
    "STACK_GLOBAL": _Machine.stack_global,
    "REDUCE": _Machine.reduce,
    "NEWOBJ": _Machine.reduce,
    "NEWOBJ_EX": _Machine.new_object_with_keywords,
    "INST": _Machine.instance,
    "OBJ": _Machine.object_of_class,
    "BUILD": _Machine.build,
    "PERSID": _Machine.persistent_text,
    "BINPERSID": _Machine.persistent_object,
    "EXT1": _Machine.refuse,
    "EXT2": _Machine.refuse,
    "EXT4": _Machine.refuse,
    "NEXT_BUFFER": _Machine.refuse,
    "READONLY_BUFFER": _Machine.refuse,
}


def _operations(stream: BufferedIOBase) -> Iterator[tuple[str, object]]:
    """Opcodes with their arguments, as ``pickletools.genops`` has them, up to the end.

    The text of Python 2 may hold any bytes here; ``genops`` wants ASCII.
    """
    while True:
        code = stream.read(1)
        opcode = OPCODES.get(code)
        if opcode is None:
            raise ValueError(
                f"the pickle has an unknown opcode {code!r}" if code else "it ends early"
            )
        if opcode.name == "STRING":
            yield opcode.name, _python2_text(stream.readline())
        else:
            yield (
                opcode.name,
                None if opcode.arg is None else opcode.arg.reader(cast("IO[bytes]", stream)),
            )
        if opcode.name == "STOP":
            return


def _python2_text(line: bytes) -> str:
    quoted = line.strip()
    if len(quoted) < 2 or quoted[:1] != quoted[-1:] or quoted[:1] not in (b"'", b'"'):
        raise ValueError("the pickle holds text without its quotes")
    return codecs.escape_decode(quoted[1:-1])[0].decode("latin-1")


def _stub(name: str, arguments: Iterable[object]) -> Stub:
    """Stand-in for what a call would give; detours of old protocols lead to the class itself."""
    given = tuple(arguments) if isinstance(arguments, list | tuple) else ()
    if name in DETOURS and given and isinstance(given[0], Global):
        return Stub(given[0].name, given[1:])
    return Stub(name, given)


def _named(module: object, attribute: object) -> Global:
    if not isinstance(module, str) or not isinstance(attribute, str):
        raise TypeError("the pickle names a global by something that is not text")
    hostile = module.split(".")[0] in HOSTILE_MODULES
    if hostile or (module in BUILTIN_MODULES and attribute in HOSTILE_BUILTINS):
        name = spoken(f"{module}.{attribute}")
        raise ModelFileError(
            f"the file names {name}, which runs commands: refused, and nothing was run; a "
            "model holds tensors only, do not open this file with other tools"
        )
    return Global(f"{module}.{attribute}")


def _key(key: object) -> object:
    """Key that is cheap to hash; a hostile nest of tuples could overflow the stack."""
    return key if isinstance(key, str | int | float | bytes | None) else object()
