"""Side by side: what one server measured with one benchmark, whatever the DBMS, line and config. Pure.

The posts of this field print it as values relative to a base, as average, median, min, max and stddev of each group of
tests, as a matrix of configs, and as the difference of the differences that a config makes on two releases. Sessions
may differ, so small differences are not to be trusted.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from history.metrics import MetricRegistry
from history.model import MAJORS, Series
from history.versions import version_key
from presentation.addresses import LineKey
from presentation.heat import UNGROUPED, test_index, test_order
from presentation.operations import relative_frame
from presentation.relative import levels, ratios
from presentation.views import View, preferred_series, throughput_metrics

if TYPE_CHECKING:
    from pandas import DataFrame
    from pandas import Series as Column

#: Config that a release means when its name says none.
DEFAULT_CONFIG = "default"
#: The columns of a summary after the number of tests, as the field has them.
SUMMARY = {"average": "mean", "median": "median", "min": "min", "max": "max", "stddev": "std"}

Lines = Mapping[LineKey, Sequence[Series]]


class Subject(NamedTuple):
    """What can be compared."""

    dbms: str
    line: str
    version: str
    config: str

    @property
    def label(self) -> str:
        return f"{self.dbms} {self.version} {self.config}"

    @property
    def short(self) -> str:
        """The release, and its config where that says something."""
        return self.label.removesuffix(f" {DEFAULT_CONFIG}")


@dataclass(frozen=True, eq=False)
class Comparison:
    """One view of everything that one server measured with one benchmark."""

    view: View
    levels: DataFrame
    """float64: index (group, test) in the order to show, columns Subject; NaN where not measured."""
    tests: DataFrame
    """Of the same index: `better`, and `smallest_pct` float64, below which a change gets no colour."""

    def measured(self, subject: Subject) -> int:
        """How many tests it has."""
        return int(self.levels[subject].count())

    def ratios(self, base: Subject) -> DataFrame:
        """Every subject relative to one."""
        return ratios(self.levels, self.levels[[base]].to_numpy())


def by_place(lines: Lines) -> dict[tuple[str, str], dict[LineKey, Sequence[Series]]]:
    """The lines of each (server, benchmark); the line of majors repeats others."""
    places: dict[tuple[str, str], dict[LineKey, Sequence[Series]]] = {}
    for key in sorted(lines, key=lambda key: (key.server, key.benchmark, key)):
        if key.line != MAJORS:
            places.setdefault((key.server, key.benchmark), {})[key] = lines[key]
    return places


def subjects_of(lines: Lines, views: Iterable[View]) -> list[Subject]:
    """Everything that a view has numbers of, DBMS by DBMS in the order of its versions."""
    shown = {name for view in views for name in view.metrics}
    subjects = {
        Subject(key.dbms, key.line, point.version, key.config)
        for key, series in lines.items()
        for member in series
        if member.key.metric in shown
        for point in member.points
        if point.values
    }
    return sorted(
        subjects, key=lambda subject: (subject.dbms, version_key(subject.dbms, subject.version), subject.config)
    )


def comparisons(
    lines: Lines,
    subjects: Sequence[Subject],
    views: Iterable[View],
    metrics: MetricRegistry,
    order: Mapping[str, int],
) -> list[Comparison]:
    """The views in which the lines of one place have figures, each with all of the subjects as columns."""
    compared = (_comparison(view, lines, subjects, metrics, order) for view in views)
    return [comparison for comparison in compared if comparison]


def _comparison(
    view: View, lines: Lines, subjects: Sequence[Subject], metrics: MetricRegistry, order: Mapping[str, int]
) -> Comparison | None:
    """None where no line has a metric of the view."""
    import pandas as pd

    values: dict[Subject, dict[str, float]] = {subject: {} for subject in subjects}
    tests: dict[str, tuple[str, str, float]] = {}
    for key, series in lines.items():
        for member in preferred_series(series, view.metrics):
            smallest = metrics[member.key.metric].smallest_change_pct
            tests[member.key.test] = member.group or UNGROUPED, member.better, smallest
            for version, level in levels(member).items():
                subject = Subject(key.dbms, key.line, version, key.config)
                if subject in values:
                    values[subject][member.key.test] = level
    if not tests:
        return None
    in_order = test_order(order)
    names = sorted(((group, test) for test, (group, *_) in tests.items()), key=in_order)
    index = test_index(names)
    columns = [[values[subject].get(test) for _, test in names] for subject in subjects]
    return Comparison(
        view,
        pd.DataFrame(dict(zip(subjects, columns, strict=True)), index=index, dtype="float64"),
        pd.DataFrame([tests[test][1:] for _, test in names], index=index, columns=["better", "smallest_pct"]),
    )


def newest_subjects(subjects: Sequence[Subject], most: int) -> list[Subject]:
    """At most so many: the oldest of the line and config that has most give way."""
    shown = list(subjects)
    while len(shown) > max(2, most):
        places = [(subject.dbms, subject.line, subject.config) for subject in shown]
        del shown[places.index(max(places, key=lambda place: (places.count(place), place)))]
    return shown


def default_pair(subjects: Sequence[Subject], compared: Sequence[Comparison]) -> tuple[Subject, Subject]:
    """What a reader most likely wants to see first: the two best-measured newest of two DBMSs, else of two lines, else
    two configs of one release, else the newest release and the one before it."""
    newest: dict[tuple[str, str], Subject] = {}
    for subject in subjects:
        line = subject.dbms, subject.line
        if line not in newest or newest[line].version != subject.version:
            newest[line] = subject
    by_dbms = {subject.dbms: subject for subject in newest.values()}
    if len(by_dbms) > 1:
        covered = {subject: sum(view.measured(subject) for view in compared) for subject in by_dbms.values()}
        first, second = sorted(covered, key=covered.__getitem__)[-2:]
        return first, second
    last = subjects[-1]
    twins = [subject for subject in subjects if subject[:3] == last[:3] and subject != last]
    if twins:
        return twins[0], last
    older = [subject for subject in subjects if subject.config == last.config and subject != last]
    return (older or list(subjects))[-1], last


def summary_frame(ratios: Column) -> DataFrame:
    """The field's table of finite ratios by (group, test): a row a group and, of several, one for all tests; columns
    `tests`, then SUMMARY. The sample standard deviation of a single test is 0."""
    import pandas as pd

    finite = ratios[ratios.abs() < float("inf")]
    groups = finite.groupby(level="group", sort=False)
    statistics: list[Any] = ["count", *SUMMARY.values()]
    summary = groups.agg(statistics)
    if len(summary) > 1:
        summary = pd.concat([summary.drop(UNGROUPED, errors="ignore"), finite.agg(statistics).to_frame(UNGROUPED).T])
    summary.columns = pd.Index(["tests", *SUMMARY])
    return summary.astype({"tests": "int64"}).fillna({"stddev": 0.0})


def throughput_of(compared: Iterable[Comparison], metrics: MetricRegistry) -> Comparison | None:
    """The view of throughput, where there is one."""
    rates = set(throughput_metrics(metrics))
    return next((comparison for comparison in compared if rates.intersection(comparison.view.metrics)), None)


def config_matrices(comparison: Comparison) -> dict[str, DataFrame]:
    """By `DBMS VERSION`, of releases that were measured with several configs: levels, index the configs, columns the
    tests that any of them has."""
    import pandas as pd

    by_release: dict[str, list[Subject]] = {}
    for column in comparison.levels.dropna(axis="columns", how="all").columns:
        subject = Subject(*column)
        by_release.setdefault(f"{subject.dbms} {subject.version}", []).append(subject)
    matrices = {}
    for release, subjects in by_release.items():
        if len(subjects) > 1:
            matrix = comparison.levels[subjects].dropna(axis="index", how="all").T
            matrix.index = pd.Index([subject.config for subject in subjects], name="config")
            matrices[release] = matrix.droplevel("group", axis="columns")
    return matrices


class Differences(NamedTuple):
    """What switching one config for another does to the throughput of two releases."""

    before: str
    after: str
    """The configs."""
    table: DataFrame
    """Index the tests that have all four; relative values of either release by its name, and of the two `ratio`: how
    much more the switch brings on the second. Ratios, since effects of configs multiply; 1 is the same on both."""


def differences(matrices: Mapping[str, DataFrame]) -> list[Differences]:
    """For each other config that the last two releases share with the first one they share."""
    if len(matrices) < 2:
        return []
    (base, left), (other, right) = list(matrices.items())[-2:]
    shared = [config for config in left.index if config in right.index]
    tests = [test for test in left.columns if test in right.columns]
    tables = []
    for config in shared[1:]:
        switched = [relative_frame(matrix[tests].loc[[shared[0], config]]).loc[config] for matrix in (left, right)]
        ratio = difference_of_differences(*switched)
        table = {base: switched[0], other: switched[1], "ratio": ratio}
        tables.append(Differences(shared[0], config, _together(table)))
    return tables


def difference_of_differences(base: Column, other: Column) -> Column:
    """The other switch over the base's, test by test."""
    return ratios(other.to_frame("ratio"), base.to_numpy()[:, None])["ratio"]


def _together(columns: Mapping[str, Column]) -> DataFrame:
    import pandas as pd

    return pd.DataFrame(dict(columns)).dropna()
