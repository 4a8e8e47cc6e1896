"""Tables of the Small Datum posts and their result files: whitespace or tabs between columns, `dbms` last.

```
sb.met.update-index.range100.pk1.dop1
--- absolute
cpu/o           cs/o    o/s     dbms
0.015003        34.740  2268    x.ma100244_rel.z11a_bee.pk1
--- relative to first result
1.10            1.15    0.76    x.ma100339_rel.z11a_bee.pk1
```

The line before `--- absolute` names the test; a table without one has a test a column and is of queries per second
(`ins upd-ix upd-nix dbms`, then `20413 5662 19837 my8039 bl0_sync0_dw0`). Relative tables are quotients, not
measurements, and are left out. Labels name DBMS, release, build and config: `my8039` is MySQL 8.0.39, `ma101107`
MariaDB 10.11.7, `pg17rc1` Postgres 17rc1, `fbmy8028` MyRocks 8.0.28.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from history.errors import InvalidRecord
from history.importers.figures import About, Figure, Parsed, decoded, number
from history.importing import Rejection
from history.metrics import shipped_metrics
from history.versions import POSTGRES_ONE_NUMBER_SINCE

#: Column heads of tables with one test a column.
TESTS = {"ins": "insert", "upd-ix": "update-index", "upd-nix": "update-nonindex"}

_TEST = re.compile(r"^sb\.met\.(?P<test>\S+?)(?:\.pk\d+)?(?:\.dop\d+)?$")
_LABEL = re.compile(
    r"^(?:x\.)?(?P<dbms>fbmy|my|ma|pg)(?P<digits>\d+)(?P<pre>(?:rc|beta|alpha)\d+)?"
    r"(?:_(?P<build>[^.\s]*))?(?:[.\s]+(?P<config>\S+?))?(?:\.pk\d+)?$"
)
DBMS = {"my": "mysql", "fbmy": "myrocks", "ma": "mariadb", "pg": "postgres"}


class Label(NamedTuple):
    """What the last column says."""

    dbms: str
    version: str
    config: str


def recognise(head: str) -> bool:
    """Whether a file that begins like this has a table whose last column is `dbms`."""
    return re.search(r"^\S+\s.*\bdbms\s*$", head, re.MULTILINE) is not None


def label(text: str) -> Label:
    """Release and config of a label. InvalidRecord when it is no label.

    >>> label("x.ma100244_rel.z11a_bee.pk1")
    Label(dbms='mariadb', version='10.2.44', config='z11a_bee')
    >>> label("pg17rc1 sync0_comp0_fpi0")
    Label(dbms='postgres', version='17rc1', config='sync0_comp0_fpi0')
    """
    match = _LABEL.match(text.strip())
    if not match:
        raise InvalidRecord(f"{text.strip()!r} is no label of a release, such as my8030_rel.z11a_bee")
    dbms = DBMS[match["dbms"]]
    return Label(dbms, version(dbms, match["digits"]) + (match["pre"] or ""), match["config"] or "")


def version(dbms: str, digits: str) -> str:
    """Digits without dots as a version: MySQL has one digit, one digit and two (`8036`), MariaDB pairs.

    >>> version("mysql", "5651"), version("mariadb", "110401"), version("postgres", "1621"), version("postgres", "9624")
    ('5.6.51', '11.4.1', '16.21', '9.6.24')
    """
    if dbms == "mariadb" and len(digits) == 6:
        return f"{digits[:2]}.{int(digits[2:4])}.{int(digits[4:])}"
    if dbms in ("mysql", "myrocks") and len(digits) in (3, 4):
        return f"{digits[0]}.{digits[1]}.{int(digits[2:])}"
    if dbms == "postgres" and digits[:2].isdigit():
        if len(digits) in (3, 4) and int(digits[:2]) >= POSTGRES_ONE_NUMBER_SINCE and digits[0] != "9":
            return f"{digits[:2]}.{int(digits[2:])}"
        if len(digits) in (3, 4) and digits[0] == "9":
            return f"9.{digits[1]}.{int(digits[2:])}"
        if len(digits) == 2:
            return digits
    raise InvalidRecord(f"{digits} is no version of {dbms} without its dots")


def parse(content: bytes, about: About) -> Parsed:
    """Figures of every absolute table."""
    test, columns = "", list[str]()
    absolute = True
    for line_number, line in enumerate(decoded(content).splitlines(), 1):
        text = line.strip()
        words = text.split("\t") if "\t" in text else text.split()
        words = [word.strip() for word in words if word.strip()]
        if match := _TEST.match(text):
            test, columns, absolute = match["test"], [], True
        elif text.startswith("---"):
            absolute, columns = not text.startswith("--- relative"), [] if "absolute" in text else columns
        elif len(words) > 1 and words[-1] == "dbms":
            columns = words[:-1]
        elif not text:
            columns = []  # a table ends at an empty line
        elif absolute and columns:
            try:
                yield from _row(line_number, words, columns, test)
            except InvalidRecord as error:
                yield Rejection(line=line_number, reason=str(error))


def _row(line_number: int, words: list[str], columns: list[str], test: str) -> Parsed:
    values, rest = words[: len(columns)], " ".join(words[len(columns) :])
    if not rest:
        raise InvalidRecord(f"{len(words)} cells, the head has {len(columns)} and `dbms`")
    release, metrics = label(rest), shipped_metrics()
    for column, text in zip(columns, values, strict=True):
        metric = metrics.named(column) if test else "qps"
        unit = metrics[metric].unit
        figure = Figure(line_number, test or TESTS.get(column, column), metric, number(text), unit)
        yield figure._replace(**release._asdict(), benchmark="sysbench")
