"""configs/alerts.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from alerts.settings import AlertSettings, load_settings
from history.errors import BadSettings

ROOT = Path(__file__).parents[2]


def test_the_committed_file_is_read_and_equals_the_defaults() -> None:
    assert load_settings(ROOT / "configs") == AlertSettings()


def test_no_file_means_the_defaults(tmp_path: Path) -> None:
    assert load_settings(tmp_path) == AlertSettings()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[filing]\ndaily_cap = 0", "filing.daily_cap: Input should be greater than or equal to 1"),
        ("[filing]\ncap = 3", "filing.cap: unknown key; allowed: "),
        ('[filing]\nkinds = ["bug"]', "filing.kinds.0: Input should be 'regression'"),
        ("[recovery]\ngiven_back = 2", "recovery.given_back"),
        ('[[webhooks]]\nname = "x"', "webhooks.0.url_env: missing"),
        ("filing = ", "Invalid value"),
    ],
)
def test_a_bad_file_names_file_and_key(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "alerts.toml"
    path.write_text(text)
    with pytest.raises(BadSettings) as raised:
        load_settings(tmp_path)
    assert str(path) in str(raised.value) and message in str(raised.value)
    assert raised.value.exit_code == 2
