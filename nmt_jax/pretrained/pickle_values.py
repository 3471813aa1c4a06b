"""The values in a pickle, read without executing it: nothing is imported, and only known functions are called."""

import dataclasses
import pickletools
from collections.abc import Callable, Mapping
from typing import Any

Functions = Mapping[str, Callable[..., Any]]

LITERALS = {
    *("BININT", "BININT1", "BININT2", "INT", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "STRING", "BINSTRING", "SHORT_BINSTRING"),
    *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
}
CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
EMPTY: dict[str, Callable[[], Any]] = {"EMPTY_DICT": dict, "EMPTY_LIST": list, "EMPTY_TUPLE": tuple}
COLLECTED: dict[str, Callable[[list[Any]], Any]] = {"TUPLE": tuple, "LIST": list}
TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
IGNORED = {"PROTO", "FRAME"}
KEYS = (str, bytes, int, float, bool, type(None))  # of dicts; other keys, such as nested tuples, are slow to hash


class PickleError(ValueError):
    """Raised if a pickle is damaged or contains what no file of tensors needs."""


@dataclasses.dataclass(frozen=True)
class Unknown:
    """A class or function that is not known, or an object of it; `name` is `module.name`. It has no content."""

    name: str


@dataclasses.dataclass(frozen=True)
class _Known:
    name: str


def read_pickle(data: bytes, functions: Functions, persistent: Callable[[Any], Any]) -> Any:
    """The value of a pickle: plain values, lists, tuples and dicts, results of `functions`, and `Unknown`.

    functions: what may be called, by `module.name`. persistent: returns the object of a persistent id. The pickle is
    interpreted as a stack program whose only effects are on its own values. Raises PickleError.
    """
    try:
        return _Interpreter(functions, persistent).run(data)
    except PickleError:
        raise
    except (ValueError, TypeError, IndexError, KeyError, AttributeError, OverflowError, RecursionError) as error:
        raise PickleError(f"not a complete pickle ({error or type(error).__name__})") from error


class _Interpreter:
    """The stack, the stacks below open marks, and the memo of a pickle that is being read."""

    def __init__(self, functions: Functions, persistent: Callable[[Any], Any]) -> None:
        self.functions, self.persistent = functions, persistent
        self.stack: list[Any] = []
        self.below: list[list[Any]] = []
        self.memo: dict[int, Any] = {}

    def run(self, data: bytes) -> Any:
        for opcode, argument, _ in pickletools.genops(data):
            if opcode.name == "STOP":
                return self.stack.pop()
            self.step(opcode.name, argument)
        raise PickleError("it has no end")

    def step(self, name: str, argument: Any) -> None:
        """Do what one opcode says."""
        stack = self.stack
        if name in LITERALS:
            stack.append(argument)
        elif name in CONSTANTS:
            stack.append(CONSTANTS[name])
        elif name in EMPTY:
            stack.append(EMPTY[name]())
        elif name in TUPLES:
            items = [stack.pop() for _ in range(TUPLES[name])]
            stack.append(tuple(reversed(items)))
        elif name in COLLECTED:
            items = self.marked()
            self.stack.append(COLLECTED[name](items))
        elif name not in IGNORED:
            operation = getattr(self, f"do_{name.lower()}", None)
            if operation is None:
                raise PickleError(f"it has an instruction {name}, which files of tensors do not need")
            operation(argument)

    def marked(self) -> list[Any]:
        """The values above the last mark, which is removed."""
        items, self.stack = self.stack, self.below.pop()
        return items

    def do_mark(self, _: None) -> None:
        self.below.append(self.stack)
        self.stack = []

    def do_pop(self, _: None) -> None:
        self.stack.pop()

    def do_binput(self, number: int) -> None:
        self.memo[number] = self.stack[-1]

    do_put = do_long_binput = do_binput

    def do_memoize(self, _: None) -> None:
        self.memo[len(self.memo)] = self.stack[-1]

    def do_binget(self, number: int) -> None:
        self.stack.append(self.memo[number])

    do_get = do_long_binget = do_binget

    def do_global(self, text: str) -> None:
        name = ".".join(text.split(" "))
        self.stack.append(_Known(name) if name in self.functions else Unknown(name))

    def do_stack_global(self, _: None) -> None:
        name, module = self.stack.pop(), self.stack.pop()
        self.do_global(f"{module} {name}")

    def do_reduce(self, _: None) -> None:
        arguments, function = self.stack.pop(), self.stack.pop()
        if isinstance(function, _Known):
            self.stack.append(self.functions[function.name](*arguments))
        elif isinstance(function, Unknown):
            self.stack.append(function)
        else:
            raise PickleError("it calls something that is not a function")

    do_newobj = do_reduce

    def do_newobj_ex(self, _: None) -> None:
        self.stack.pop()
        self.do_reduce(None)

    def do_build(self, _: None) -> None:
        self.stack.pop()  # attributes, such as those that torch adds to the dict of a module's tensors

    def do_binpersid(self, _: None) -> None:
        self.stack.append(self.persistent(self.stack.pop()))

    def do_empty_set(self, _: None) -> None:
        self.stack.append(Unknown("builtins.set"))

    def do_frozenset(self, _: None) -> None:
        self.marked()
        self.stack.append(Unknown("builtins.frozenset"))

    def do_additems(self, _: None) -> None:
        self.marked()

    def do_append(self, _: None) -> None:
        item = self.stack.pop()
        self.extend([item])

    def do_appends(self, _: None) -> None:
        self.extend(self.marked())

    def extend(self, items: list[Any]) -> None:
        if not isinstance(self.stack[-1], Unknown):
            self.stack[-1].extend(items)

    def do_dict(self, _: None) -> None:
        items = self.marked()
        self.stack.append({})
        self.update(items)

    def do_setitem(self, _: None) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self.update([key, value])

    def do_setitems(self, _: None) -> None:
        self.update(self.marked())

    def update(self, items: list[Any]) -> None:
        """Add keys and values, which alternate, to the dict on top of the stack."""
        if isinstance(self.stack[-1], Unknown):
            return
        for key, value in zip(items[::2], items[1::2], strict=True):
            if isinstance(key, KEYS):
                self.stack[-1][key] = value
