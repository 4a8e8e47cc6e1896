"""Named configs: what the files hold, how releases change them, and what is refused."""

from __future__ import annotations

import re
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from history.errors import BadSettings
from runners.settings.dbms import ConfigNotRunnable, DbmsSettings, Sizing, load_dbms, render

SIZING = Sizing(pool_mib=256, log_mib=128, cores=4, connections=50)
RELEASES = {
    "postgres": ("9.6.24", "10.23", "12.22", "14.0", "17.2", "18.6"),
    "mysql": ("5.5.9", "5.6.24", "5.7.44", "8.0.28", "8.0.30", "8.4.0", "9.7.4"),
    "mariadb": ("10.2.11", "10.6.20", "10.11.19", "11.8.6", "12.3.0"),
    "myrocks": ("8.0.28", "10.11.19", "11.8.6"),
}
PAIRS = [(dbms, version) for dbms, versions in RELEASES.items() for version in versions]

#: What the posts set, by config: https://smalldatum.blogspot.com, 24 September 2024.
MYSQL_FACTS = {
    f"bl{bl}_sync{sync}_dw{dw}": {
        "innodb_flush_log_at_trx_commit": "1" if sync else "2",
        "sync_binlog": "1" if bl and sync else "0",
        "innodb_doublewrite": {"0": "OFF", "1": "ON", "DO": "DETECT_ONLY"}[dw],
    }
    for bl, sync, dw in product((0, 1), (0, 1), ("0", "1", "DO"))
}
POSTGRES_FACTS = {
    f"sync{sync}_comp{comp}_fpi{fpi}": {
        "synchronous_commit": "on" if sync else "off",
        "wal_compression": {"0": "off", "1": "on", "LZ4": "lz4"}[comp],
        "full_page_writes": "on" if fpi else "off",
        "wal_sync_method": "fdatasync",
    }
    for sync, comp, fpi in product((0, 1), ("0", "1", "LZ4"), (0, 1))
}
MARIADB_FACTS = {
    "z12b": {"sync_binlog": "0", "innodb_flush_log_at_trx_commit": "2", "innodb_doublewrite": "ON"},
    "z12c": {"sync_binlog": "0", "innodb_flush_log_at_trx_commit": "2", "binlog_storage_engine": "innodb"},
    "z12b_sync": {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1"},
    "z12c_sync": {"sync_binlog": "1", "innodb_flush_log_at_trx_commit": "1", "binlog_storage_engine": "innodb"},
}


@pytest.mark.parametrize(
    ("dbms", "version", "facts"),
    [("mysql", "8.0.39", MYSQL_FACTS), ("postgres", "17rc1", POSTGRES_FACTS), ("mariadb", "12.3.0", MARIADB_FACTS)],
)
def test_configs_of_the_posts_set_what_the_posts_say(
    configs: Path, dbms: str, version: str, facts: dict[str, dict[str, str]]
) -> None:
    settings = load_dbms(dbms, configs)
    for name, wanted in facts.items():
        options = render(settings, name, version, SIZING).options
        assert {key: options[key] for key in wanted} == wanted, name


def test_the_binlog_is_off_or_on_as_the_name_says(configs: Path) -> None:
    settings = load_dbms("mysql", configs)
    for name in MYSQL_FACTS:
        options = render(settings, name, "8.0.39", SIZING).options
        assert ("log_bin" in options) == name.startswith("bl1"), name
        assert ("skip_log_bin" in options) == name.startswith("bl0"), name


@pytest.mark.parametrize(("dbms", "version"), PAIRS)
def test_every_config_renders_or_says_what_it_needs(configs: Path, dbms: str, version: str) -> None:
    settings = load_dbms(dbms, configs)
    for name in settings.configs:
        for overlays in ((), ("instructions",)):
            try:
                rendered = render(settings, name, version, SIZING, overlays)
            except ConfigNotRunnable as error:
                assert f"{dbms} {version} cannot run config {name}" in str(error)
                continue
            for option, value in rendered.options.items():
                assert not re.search(r"\{[a-z_]+\}", value), (name, option, value)
            assert len(rendered.text.splitlines()) == len(rendered.options) + (1 if dbms == "postgres" else 2)


@pytest.mark.parametrize(
    ("version", "present", "absent"),
    [
        ("8.0.28", "innodb_log_file_size", "innodb_redo_log_capacity"),
        ("8.0.30", "innodb_redo_log_capacity", "innodb_log_file_size"),
        ("5.7.44", "query_cache_size", "skip_log_bin"),
        ("8.0.11", "innodb_log_file_size", "query_cache_size"),
        ("5.5.9", "innodb_adaptive_hash_index", "eq_range_index_dive_limit"),
        ("5.5.9", "innodb_change_buffering", "innodb_checksum_algorithm"),
        ("5.6.24", "eq_range_index_dive_limit", "innodb_redo_log_capacity"),
        ("5.6.24", "gtid_mode", "skip_log_bin"),
    ],
)
def test_options_that_came_and_went(configs: Path, version: str, present: str, absent: str) -> None:
    options = render(load_dbms("mysql", configs), "bl0_sync0_dw1", version, SIZING).options
    assert present in options
    assert absent not in options


#: What the published option files pin: default of the old releases, and another one of the new.
PINNED = {
    "innodb_adaptive_hash_index": "OFF",
    "innodb_autoinc_lock_mode": "2",
    "innodb_checksum_algorithm": "crc32",
    "innodb_change_buffering": "none",
    "eq_range_index_dive_limit": "10",
    "performance_schema": "ON",
    "sql_mode": "NO_ENGINE_SUBSTITUTION,NO_UNSIGNED_SUBTRACTION",
    "character_set_server": "latin1",
    "binlog_format": "ROW",
}


@pytest.mark.parametrize(("dbms", "version"), [("mysql", "5.6.24"), ("mysql", "9.7.4"), ("mariadb", "10.11.19")])
def test_a_default_that_changed_changes_no_config_but_the_vendors(configs: Path, dbms: str, version: str) -> None:
    settings = load_dbms(dbms, configs)
    pinned = PINNED | ({"gtid_mode": "OFF", "enforce_gtid_consistency": "OFF"} if dbms == "mysql" else {})
    options = render(settings, "default", version, SIZING).options
    assert {name: options[name] for name in pinned} == pinned
    assert not render(settings, "vendor-defaults", version, SIZING).options.keys() & pinned.keys()


def test_a_release_is_not_asked_for_an_option_it_lacks(configs: Path) -> None:
    mariadb = load_dbms("mariadb", configs)
    for version, has in (("10.2.11", False), ("10.2.18", True), ("10.3.9", False), ("10.3.10", True), ("12.3.0", True)):
        options = render(mariadb, "default", version, SIZING).options
        assert ("eq_range_index_dive_limit" in options) == has, version
        assert ("innodb_change_buffering" in options) == (version != "12.3.0"), version


def test_what_needs_a_later_release_is_refused_with_the_reason(configs: Path) -> None:
    with pytest.raises(ConfigNotRunnable, match=r"mariadb 11\.8\.6 .* z12c: binlog_storage_engine came with .* 12\.3"):
        render(load_dbms("mariadb", configs), "z12c", "11.8.6", SIZING)
    with pytest.raises(ConfigNotRunnable, match=r"z12c_sync: binlog_storage_engine"):
        render(load_dbms("mariadb", configs), "z12c_sync", "11.8.6", SIZING)
    with pytest.raises(ConfigNotRunnable, match=r"DETECT_ONLY came with MySQL 8\.0\.30"):
        render(load_dbms("mysql", configs), "bl1_sync0_dwDO", "8.0.28", SIZING)


def test_option_file_golden() -> None:
    settings = DbmsSettings.model_validate(
        {
            "dbms": "postgres",
            "configs": {
                "base": {"options": {"shared_buffers": "{pool_mib}MB", "jit": {"value": False, "since": "11"}}},
                "loud": {"extends": "base", "options": {"log_line_prefix": "it's \\t", "shared_buffers": "1GB"}},
            },
        }
    )
    assert render(settings, "loud", "17.2", SIZING).text == (
        "# postgres 17.2, config loud\nshared_buffers = '1GB'\njit = 'off'\nlog_line_prefix = 'it''s \\\\t'\n"
    )
    assert "jit" not in render(settings, "loud", "10.23", SIZING).options


def test_a_config_can_leave_out_an_option_of_its_parent() -> None:
    settings = DbmsSettings.model_validate(
        {
            "dbms": "mysql",
            "configs": {"a": {"options": {"x": 1, "y": ""}}, "b": {"extends": "a", "without": ["x"]}},
        }
    )
    assert render(settings, "b", "8.4.0", SIZING).text == "# mysql 8.4.0, config b\n[mysqld]\ny\n"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('dbms = "mysql"\n[configs.a]\nextends = "b"\n[configs.b]\nextends = "a"\n', "a extends b extends a: a circle"),
        ('dbms = "mysql"\n[configs.a]\nextends = "b"\n', "a extends 'b', which does not exist"),
        ('dbms = "mysql"\n[configs.a]\noption = 1\n', r"configs\.a\.option: unknown key"),
        ('dbms = "mysql"\n[configs.a]\noptions = { "in valid" = 1 }\n', "in valid"),
        ('dbms = "oracle"\n[configs.a]\n', "dbms: Input should be 'postgres', 'mysql', 'mariadb' or 'myrocks'"),
        ('dbms = "mysql"\n[configs."a.held-1"]\n', r"a\.held-1: '\.held-' marks third arms"),
        ('dbms = "mariadb"\n[configs.a]\n', "must be 'mysql', as the folder is called"),
    ],
)
def test_bad_files_are_named_with_what_is_wrong(tmp_path: Path, text: str, complaint: str) -> None:
    folder = tmp_path / "dbms" / "mysql"
    folder.mkdir(parents=True)
    (folder / "configs.toml").write_text(text)
    with pytest.raises(BadSettings, match=complaint) as caught:
        load_dbms("mysql", tmp_path)
    assert "configs.toml" in str(caught.value)


@pytest.mark.parametrize("value", ["a\nb", "a\r", "a\0b"])
def test_a_value_cannot_add_lines_to_an_option_file(value: str) -> None:
    settings = DbmsSettings(dbms="mysql", configs={"a": {"options": {"x": value}}})  # type: ignore[dict-item]
    with pytest.raises(BadSettings, match="one line"):
        render(settings, "a", "8.4.0", SIZING)


def test_unknown_names_are_answered_with_the_known_ones() -> None:
    settings = DbmsSettings(dbms="mysql", configs={"a": {"options": {"x": "{memory}"}}})  # type: ignore[dict-item]
    with pytest.raises(BadSettings, match=r"\{memory\}.*half_log_mib, log_mib, pool_mib"):
        render(settings, "a", "8.4.0", SIZING)
    with pytest.raises(BadSettings, match=r"config of mysql is called 'b'; there are a"):
        render(settings, "b", "8.4.0", SIZING)
    with pytest.raises(BadSettings, match="no version of mysql"):
        render(
            DbmsSettings.model_validate({"dbms": "mysql", "configs": {"a": {"needs": {"since": "x", "reason": "r"}}}}),
            "a",
            "8.4.0",
            SIZING,
        )


versions = st.tuples(st.integers(5, 12), st.integers(0, 20), st.integers(0, 60)).map(lambda v: ".".join(map(str, v)))


@given(boundary=versions, version=versions)
def test_of_two_spans_that_meet_exactly_one_holds(boundary: str, version: str) -> None:
    settings = DbmsSettings.model_validate(
        {
            "dbms": "mysql",
            "configs": {
                "a": {
                    "options": {
                        "old": {"value": 1, "before": boundary},
                        "new": {"value": 1, "since": boundary},
                        "both": [{"value": "old", "before": boundary}, {"value": "new", "since": boundary}],
                    }
                }
            },
        }
    )
    options = render(settings, "a", version, SIZING).options
    later = tuple(map(int, version.split("."))) >= tuple(map(int, boundary.split(".")))
    assert options == {("new" if later else "old"): "1", "both": "new" if later else "old"}
