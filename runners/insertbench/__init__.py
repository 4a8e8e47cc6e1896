"""The Insert Benchmark: its steps as roles, each one sysbench process, and what they give.

The steps are M. Callaghan's (Small Datum), the scripts our own.
"""

from runners.insertbench.driver import StepRun, run_step
from runners.insertbench.figures import efficiency, parse_window, rates, throughput
from runners.insertbench.roles import LUA, explain_command, prepare_command, role_commands

__all__ = [
    "LUA",
    "StepRun",
    "efficiency",
    "explain_command",
    "parse_window",
    "prepare_command",
    "rates",
    "role_commands",
    "run_step",
    "throughput",
]
