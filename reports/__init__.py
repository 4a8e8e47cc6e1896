"""Reports: history and findings -> tables, charts, web pages.

`build(store, out, settings)` writes the static site; `presentation.line_tables` has its tables for terminal and files.
"""

from reports.settings import ReportSettings, load_settings
from reports.site import BuildReport, build
