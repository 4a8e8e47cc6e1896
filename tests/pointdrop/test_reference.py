"""The committed command reference is what the commands say of themselves."""

import subprocess
import sys
from pathlib import Path

from pointdrop.cli.main import COMMANDS
from pointdrop.cli.reference import reference


def test_docs_cli_is_up_to_date() -> None:
    committed = Path(__file__).parents[2] / "docs" / "cli.md"
    assert committed.read_text() == reference(), "run: python -m pointdrop.cli.reference docs/cli.md"


def test_help_imports_no_command() -> None:
    program = """if True:
        import sys
        from pointdrop.cli.main import app
        app(["--help"], standalone_mode=False)
        print(*sorted({name.split(".")[0] for name in sys.modules}))
    """
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    listing, modules = done.stdout.rstrip().rsplit("\n", 1)
    assert all(f"\n  {name} " in listing for name in COMMANDS)
    assert not {"history", "runners", "detector", "alerts", "reports", "rich", "numpy"} & set(modules.split())
