"""The committed command reference is what the commands say of themselves."""

from pathlib import Path

from pointdrop.cli.reference import reference


def test_docs_cli_is_up_to_date() -> None:
    committed = Path(__file__).parents[2] / "docs" / "cli.md"
    assert committed.read_text() == reference(), "run: python -m pointdrop.cli.reference docs/cli.md"
