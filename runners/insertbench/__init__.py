"""The Insert Benchmark: its steps as roles, each one sysbench process, and what they give.

The steps are M. Callaghan's (Small Datum), the scripts our own.
"""
