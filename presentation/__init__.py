"""What people are told of series and findings, once for issues, pages, the terminal and files.

A finding's headline (`headline`), its tables and its place among others (`findings`), sentences (`sentences`), the
commands that repeat it (`commands`), addresses of pages (`addresses`), how numbers are written (`number_format`), and
the tables of a line (`heat`, `operations`, `insert`, `comparison`) as pandas DataFrames that `tables` writes as text,
Markdown, CSV and JSON. Pure: it reads no file and no history.
"""
