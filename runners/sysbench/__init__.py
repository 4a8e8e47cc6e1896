"""sysbench 1.0 with our own Lua scripts: command lines, output, and the process in between."""

from runners.sysbench.command import (
    age_command,
    count_command,
    explain_command,
    prepare_command,
    run_command,
)
from runners.sysbench.driver import run_sysbench
from runners.sysbench.output import CountedWindow, Report, Second, parse_plans, parse_report
from runners.sysbench.scripts import scripts_digest

__all__ = [
    "CountedWindow",
    "Report",
    "Second",
    "age_command",
    "count_command",
    "explain_command",
    "parse_plans",
    "parse_report",
    "prepare_command",
    "run_command",
    "run_sysbench",
    "scripts_digest",
]
