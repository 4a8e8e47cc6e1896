"""Base names: real names of servers as golden pairs, generated signatures, and no input that breaks it."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.function_names import base_name, is_unknown, object_base, unknown_name

#: As callgrind wrote them, of MySQL 5.6.24 and 9.7.4, MariaDB 11.4.5, Postgres 18.1 and their libraries.
CAPTURED = {
    "row_sel_store_mysql_rec(unsigned char*, row_prebuilt_t*, unsigned char const*, dtuple_t const*, bool, "
    "dict_index_t const*, unsigned long const*, bool, mem_block_info_t*&)": "row_sel_store_mysql_rec",
    "handler::ha_index_read_idx_map(unsigned char*, unsigned int, unsigned char const*, unsigned long, "
    "ha_rkey_function)": "handler::ha_index_read_idx_map",
    "decltype(auto) mysql::utils::call_and_catch<mysql::gtids::Tsid_traits>(mysql::gtids::Tsid&&)": "mysql::utils::"
    "call_and_catch",
    "void mutex_enter_inline<PolicyMutex<TTASEventMutex<GenericPolicy> > >(PolicyMutex<TTASEventMutex<"
    "GenericPolicy> >*, ut::Location)": "mutex_enter_inline",
    "Buf_fetch<Buf_fetch_normal>::single_page()'2": "Buf_fetch::single_page",
    "Bitmap<64u>::Iterator::operator++(int) [clone .isra.280]": "Bitmap::Iterator::operator++",
    "Sql_alloc::operator new(unsigned long, st_mem_root*) [clone .constprop.401]": "Sql_alloc::operator new",
    "operator new(unsigned long, std::nothrow_t const&)": "operator new",
    "Ha_trx_info_list::Iterator::operator*() const": "Ha_trx_info_list::Iterator::operator*",
    "std::locale::operator=(std::locale const&)": "std::locale::operator=",
    "void std::__merge_adaptive<unsigned char**, long, unsigned char**, (anonymous namespace)::Mem_compare>(unsigned "
    "char**, unsigned char**, long, (anonymous namespace)::Mem_compare)": "std::__merge_adaptive",
    "(anonymous namespace)::opt_trace_disable_if_no_tables_access(THD*, TABLE_LIST*)": "(anonymous namespace)::"
    "opt_trace_disable_if_no_tables_access",
    "QUICK_RANGE_SELECT::~QUICK_RANGE_SELECT()'2": "QUICK_RANGE_SELECT::~QUICK_RANGE_SELECT",
    "non-virtual thunk to Item_param::const_is_null() const": "non-virtual thunk to Item_param::const_is_null",
    "mysql::gtid::Tag::to_string[abi:cxx11]() const": "mysql::gtid::Tag::to_string",
    "buf_page_check_lsn(bool, unsigned char const*) [clone .part.62]": "buf_page_check_lsn",
    "inline_mysql_mutex_lock.constprop.393": "inline_mysql_mutex_lock",
    "pthread_cond_timedwait@@GLIBC_2.3.2": "pthread_cond_timedwait",
    "memcpy@GLIBC_2.2.5": "memcpy",
    "eval_const_expressions_mutator'2": "eval_const_expressions_mutator",
    "SetupLockInTable.isra.5": "SetupLockInTable",
    "__memcpy_avx_unaligned_erms": "__memcpy_avx_unaligned_erms",
    "(below main)": "(below main)",
}
#: Of the symbol tables of the same servers, demangled by `c++filt`.
SYMBOLS = {
    "_ZN4ListI4ItemE8elementsEv": "List::elements",
    "_ZNK4gtid3TagltERKS0_": "gtid::Tag::operator<",
    "_ZltIcEbRK3KeyIT_ES4_": "operator<",
    "_ZlsRSoRK4Gtid": "operator<<",
    "_ZN3FooclEi": "Foo::operator()",
    "_ZN3FoossERKS_": "Foo::operator<=>",
    "_ZN3FooptEv": "Foo::operator->",
    "_ZN3FooixEm": "Foo::operator[]",
    "_ZN3FoonaEm": "Foo::operator new[]",
    "_ZN3FoodaEPv": "Foo::operator delete[]",
    "_ZNK3FoocvbEv": "Foo::operator bool",
    "_ZNK3FoocvPKhEv": "Foo::operator unsigned char const*",
    "_ZNK3FoocvSt6vectorIiSaIiEEEv": "Foo::operator std::vector",
    "_ZZN3Foo3runEiENKUlPFviEE0_clES1_": "Foo::run::{lambda}::operator()",
    "_ZZN3Foo3runEvENKUlvE_clEv": "Foo::run::{lambda}::operator()",
    "_ZN3Foo4sortEPFiPKvS1_E": "Foo::sort",
    "_Z6chooseIiEPFvcET_": "choose",
    "_ZN5OuterISt6vectorIS0_IiSaIiEESaIS2_EEE5Inner3getILi3EEEDav": "Outer::Inner::get",
    "_ZZ5outervEN5Local3runEi": "outer::Local::run",
    "_ZThn16_N4Item7val_intEv": "non-virtual thunk to Item::val_int",
    "_Z1gIiENSt9enable_ifIXltLi1ELi2EEiE4typeEv": "g",
    "_Z1gIiENSt9enable_ifIXleLi1ELi2EEiE4typeEv": "g",
    "_Z1gIiENSt9enable_ifIXgeLi1ELi2EEiE4typeEv": "g",
    "_Z1gIiENSt9enable_ifIXgtLi1ELi2EEiE4typeEv": "g",
    "_Z1gIiENSt9enable_ifIXlsLi1ELi2EEiE4typeEv": "g",
    "_ZN1AIXltLi1ELi2EEE1fIPFivEEEvT_": "A::f",
    "_ZN3FooclIN12_GLOBAL__N_11XEEEvT_": "Foo::operator()",
    "_Z1gIXadL_ZN1XclIN12_GLOBAL__N_11YEEEvT_EEEvv": "g",
}  # fmt: skip


@pytest.mark.parametrize(("name", "base"), CAPTURED.items())
def test_captured_names(name: str, base: str) -> None:
    assert base_name(name) == base


def test_names_of_the_demangler() -> None:
    """The mangled name says what the base name is; the demangler of binutils writes what is read here."""
    out = subprocess.run(["c++filt"], input="\n".join(SYMBOLS), capture_output=True, text=True, check=True).stdout
    demangled = out.splitlines()
    assert not [name for name in demangled if name.startswith("_Z")]
    assert dict(zip(demangled, map(base_name, demangled), strict=True)) == dict(
        zip(demangled, SYMBOLS.values(), strict=True)
    )


IDENTIFIERS = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("operator", "decltype", "const", "volatile", "noexcept", "restrict")
)
TYPES = st.recursive(
    IDENTIFIERS | st.sampled_from(["unsigned long", "char const*", "(anonymous namespace)::Row", "3u", "(Kind)2"]),
    lambda inner: st.one_of(
        st.builds("{}<{}>".format, IDENTIFIERS, st.lists(inner, min_size=1, max_size=3).map(", ".join)),
        st.builds("{} (*)({})".format, inner, st.lists(inner, max_size=2).map(", ".join)),
        st.builds("{} const&".format, inner),
        st.builds("&(f(int)::{{lambda({})#1}}::operator())".format, inner),
    ),
    max_leaves=6,
)
#: Values are arguments of templates alone, and a function that returns a pointer to one has its name inside.
RETURNED = TYPES.filter(lambda text: not any(part in text for part in ("(Kind)", "(*)", "#")))
ARGUMENTS = st.lists(TYPES, max_size=3).map(lambda types: f"({', '.join(types)})")
TEMPLATES = st.just("") | st.lists(TYPES, min_size=1, max_size=2).map(lambda types: f"<{', '.join(types)} >")
SYMBOLIC = st.sampled_from(
    ["operator()", "operator[]", "operator->", "operator<", "operator<<", "operator>", "operator>>=", "operator<=>",
     "operator,", "operator new", "operator delete[]", "operator bool", "operator unsigned long", 'operator""_kb']
)  # fmt: skip
CLONES = st.lists(
    st.sampled_from(["part.0", "constprop.12", "isra.3", "cold", "lto_priv.7", "llvm.991"]), max_size=3
)  # fmt: skip


@st.composite
def signatures(draw: st.DrawFn) -> tuple[str, str]:
    """A demangled C++ function, and its base name."""
    scopes = draw(st.lists(IDENTIFIERS | st.just("(anonymous namespace)"), max_size=3))
    text, base = "", ""
    for scope in scopes:
        text, base = f"{text}{scope}{draw(TEMPLATES) if scope[0] != '(' else ''}::", f"{base}{scope}::"
    inside = draw(st.sampled_from(["", "method", "lambda"]))
    if inside:
        function = draw(IDENTIFIERS)
        text, base = (
            f"{text}{function}{draw(ARGUMENTS)}{draw(st.sampled_from(['', ' const']))}::",
            f"{base}{function}::",
        )
        local = draw(ARGUMENTS).join(("{lambda", "#2}")) if inside == "lambda" else draw(IDENTIFIERS)
        text, base = f"{text}{local}::", f"{base}{'{lambda}' if inside == 'lambda' else local}::"
    last = draw(IDENTIFIERS | SYMBOLIC)
    template = draw(TEMPLATES)
    if template and last.endswith("<"):
        template = f" {template}"
    returned = f"{draw(RETURNED)} " if template else ""
    qualifiers = draw(st.sampled_from(["", " const", " &&", " const &", " volatile"]))
    clones = "".join(f" [clone .{suffix}]" for suffix in draw(CLONES))
    level = draw(st.sampled_from(["", "'2"]))
    return f"{returned}{text}{last}{template}{draw(ARGUMENTS)}{qualifiers}{clones}{level}", base + last


@given(signatures())
def test_a_generated_signature_has_its_base_name(signature: tuple[str, str]) -> None:
    text, base = signature
    assert base_name(text) == base


@given(IDENTIFIERS, CLONES)
def test_symbols_of_c_lose_their_clone_suffixes(name: str, clones: list[str]) -> None:
    assert base_name(".".join([name, *clones])) == name


@given(st.text(max_size=40) | st.text(alphabet="abo:<>(){}[]*&~,.@'# 0", max_size=40))
def test_what_is_no_signature_keeps_a_name(text: str) -> None:
    assert bool(base_name(text)) == bool(text)


@given(signatures())
def test_a_base_name_is_its_own(signature: tuple[str, str]) -> None:
    base = base_name(signature[0])
    assert base_name(base) == base


def test_versions_of_libraries_are_one_object() -> None:
    names = ["libstdc++.so.6.0.30", "libstdc++.so.6.0.33", "libstdc++.so.6"]
    assert {object_base(name) for name in names} == {"libstdc++.so"}
    assert {object_base(name) for name in ("libc.so.6", "libc-2.31.so", "libc.so")} == {"libc.so"}
    assert object_base("libaio.so.1t64") == "libaio.so"
    assert object_base("ld-linux-x86-64.so.2") == "ld-linux-x86-64.so"
    assert object_base("libcrypto.so.1.1") == object_base("libcrypto.so.3")
    assert object_base("mysqld") == "mysqld" and object_base("mysqld-debug") == "mysqld-debug"


def test_functions_without_a_name() -> None:
    assert is_unknown("0x00000000027bdca0") and is_unknown("0x0000000002a9e659'2") and is_unknown("???")
    assert not is_unknown("0x_reader") and not is_unknown("memcpy")
    assert unknown_name("mysqld") == "(unknown in mysqld)" and unknown_name("libz.so.1") == "(unknown in libz.so)"
    assert unknown_name("???") == unknown_name("") == "(unknown)"
    assert base_name(unknown_name("mysqld")) == unknown_name("mysqld")
