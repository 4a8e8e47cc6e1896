"""What a function is called in every release: its base name, and its object without a version. Pure.

Between two releases a signature changes, a compiler clones another part, a template gets one parameter more, and every
address is another one. What stays is the qualified name:

>>> base_name("void mutex_enter_inline<PolicyMutex<TTASEventMutex<GenericPolicy> > >(ut::Location) [clone .isra.0]")
'mutex_enter_inline'
>>> base_name("ha_innobase::index_read(unsigned char*, unsigned int, ha_rkey_function) const")
'ha_innobase::index_read'
>>> object_base("libstdc++.so.6.0.30"), object_base("libc-2.31.so")
('libstdc++.so', 'libc.so')

Names are those of the GNU demangler, which callgrind and `c++filt` use, or plain symbols of C.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: What callgrind calls a function or an object without a name.
NO_NAME = "???"

_ADDRESS = re.compile(r"0x[0-9a-fA-F]+")
#: Callgrind tells recursion levels apart with a suffix.
_RECURSION = re.compile(r"'\d+$")
#: Ends of the names of copies and parts of a function that GCC and Clang make: `f.part.0`. A bare number tells apart
#: two local functions of one name.
_CLONES = {"part", "constprop", "isra", "cold", "unlikely", "lto_priv", "llvm", "localalias", "clone"}
#: What may follow the arguments before the name goes on with `::`, as in `f(int) const::{lambda()#1}`.
_QUALIFIERS = re.compile(r"(?: ?(?:const|volatile|noexcept|restrict|__restrict|&&?)(?!\w))*")
#: Functions that the compiler makes for another are functions of their own.
_MADE_FOR = re.compile(
    r"(?:(?:non-virtual|virtual|covariant return) thunk to|TLS (?:init|wrapper) function for) ", re.ASCII
)
_WORD = re.compile(r"[^o(<{\[ ]+|.", re.DOTALL)
_OPERATOR = re.compile(r"operator(?!\w)")
#: Symbols of operators, the longest first; `operator()` and `operator[]` too.
_SYMBOLS = re.compile(
    r"\(\)|\[\]|<=>|<<=|>>=|->\*|->|<<|>>|<=|>=|==|!=|&&|\|\||\+\+|--|[-+*/%^&|]=|[-+*/%^&|~!=<>,]|"
    r' new\[\]| delete\[\]| new(?!\w)| delete(?!\w)| co_await(?!\w)|"" ?\w+'
)
#: The name of a function that returns a pointer to a function stands inside: `void (*f<int>())(char)`.
_DECLARATOR = re.compile(r"\((?:[\w:]+::)?[*&]+ ?")
#: An operator between two operands, each of which the demangler puts in parentheses: `enable_if<(1)<(2), int>`. `>` and
#: `>>` are not here: they may as well close the type of a function, as in `f<void (int)>(int)`.
_COMPARISON = re.compile(r"(?<=\))(?:<=>|<<|<=|<|>=)(?=\()")
_ANONYMOUS = "(anonymous namespace)"
_OPENING, _CLOSING = "(<[{", ")>]}"
_LIBRARY = re.compile(r"^(.+?)(?:-\d+\.[\d.]*\d)?\.so(?:\..*)?$")


def is_unknown(function: str) -> bool:
    """Whether it has no name: the object was stripped of its symbols, and an address says nothing elsewhere."""
    return function in ("", NO_NAME) or _ADDRESS.fullmatch(_RECURSION.sub("", function)) is not None


def object_base(name: str) -> str:
    """The file name of a program or library without version: `libcrypto.so.1.1` is `libcrypto.so`."""
    library = _LIBRARY.match(name)
    return f"{library[1]}.so" if library else name


def unknown_name(obj: str) -> str:
    """The one name of all functions of an object that have none."""
    return "(unknown)" if obj in ("", NO_NAME) else f"(unknown in {object_base(obj)})"


@lru_cache(maxsize=16_384)
def base_name(name: str) -> str:
    """`name` without arguments, template parameters, return type, qualifiers, clone suffixes, symbol version, recursion
    level, and without the numbers of lambdas; what cannot be read stays as it is.

    >>> base_name("bool operator< <char>(Key<char> const&, Key<char> const&)")
    'operator<'
    >>> base_name("Server::run(int)::{lambda(void (*)(int))#2}::operator()(void (*)(int)) const")
    'Server::run::{lambda}::operator()'
    >>> base_name("palloc.constprop.0.isra.3")
    'palloc'
    """
    name = _RECURSION.sub("", name) or name
    made_for = _MADE_FOR.match(name)
    prefix = made_for[0] if made_for else ""
    return prefix + (_qualified(name[len(prefix) :]) or name[len(prefix) :])


def _qualified(text: str) -> str:
    """The qualified name in a demangled signature, or in a symbol; empty when there is none."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        char = text[at]
        if text.startswith(_ANONYMOUS, at):
            parts.append(_ANONYMOUS)
            at += len(_ANONYMOUS)
        elif char == "o" and (at == 0 or not _in_word(text[at - 1])) and _OPERATOR.match(text, at):
            operator, at = _operator(text, at + len("operator"))
            parts.append(f"operator{operator}")
        elif char == "<":
            at = _closing(text, at)
        elif char == "(":
            if at == 0:  # "(below main)"
                return text
            if not parts and (inside := _after(_DECLARATOR, text, at)) > at:
                at = inside
            elif "".join(parts) in ("", "decltype"):
                at = _closing(text, at)
                parts.clear()
            else:
                at = _after(_QUALIFIERS, text, _closing(text, at))
                if not text.startswith("::", at):
                    break
        elif char == "{":
            end = _closing(text, at)
            parts.append("{" + re.sub(r"\(.*\)|#\d+", "", text[at + 1 : end - 1]) + "}")
            at = end
        elif text.startswith("[abi:", at):
            at = _closing(text, at)
        elif char == " ":
            if text.startswith("[clone", at + 1):
                break
            if "".join(parts) != "decltype":
                parts.clear()  # what stood before was the return type
            at += 1
        else:
            end = _after(_WORD, text, at)
            parts.append(text[at:end])
            at = end
    words = "".join(parts).partition("@")[0].split(".")  # `memcpy@GLIBC_2.2.5`
    while len(words) > 1 and (words[-1] in _CLONES or words[-1].isdecimal()):
        words.pop()
    return ".".join(words)


def _after(pattern: re.Pattern[str], text: str, at: int) -> int:
    """Where what `pattern` matches at `at` ends."""
    match = pattern.match(text, at)
    return match.end() if match else at


def _in_word(char: str) -> bool:
    return char.isalnum() or char == "_"


def _operator(text: str, at: int) -> tuple[str, int]:
    """The operator whose keyword ends at `at`, and where its arguments begin."""
    symbol = _SYMBOLS.match(text, at)
    if symbol:
        end = symbol.end()
        return symbol[0].replace('"" ', '""'), end + 1 if text.startswith(" <", end) else end
    end, parts = at, []  # a conversion: the type is the name
    while end < len(text) and text[end] != "(":
        if text[end] == "<":
            end = _closing(text, end)
        elif text.startswith(" [clone", end):
            break
        else:
            parts.append(text[end])
            end += 1
    return "".join(parts), end


def _closing(text: str, at: int) -> int:
    """The place after the bracket that closes the one at `at`; the end of the text where none does.

    Inside parentheses `<` and `>` may be operators: one that no bracket of its kind closes does not count.
    """
    open_brackets: list[str] = []
    while at < len(text):
        char = text[at]
        if char == "o" and not _in_word(text[at - 1]) and _OPERATOR.match(text, at):
            at = _operator(text, at + len("operator"))[1]
            if text.startswith("<", at):  # the template parameters of `operator()`, no comparison
                open_brackets.append(">")
                at += 1
            continue
        if text.startswith("->", at):
            at += 2
            continue
        if open_brackets and (comparison := _COMPARISON.match(text, at)):
            at = comparison.end()
            continue
        if char in _OPENING:
            open_brackets.append(_CLOSING[_OPENING.index(char)])
        elif char in _CLOSING and (char != ">" or open_brackets[-1] == ">"):
            while open_brackets.pop() != char:
                if not open_brackets:
                    break  # brackets that do not pair
            if not open_brackets:
                return at + 1
        at += 1
    return len(text)
