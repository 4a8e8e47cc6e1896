"""Reports: history and findings -> tables, charts, web pages.

`build(store, out, settings)` writes the static site; `reports.tables` has the same tables for terminal and Markdown.
"""

from reports.settings import ReportSettings, load_settings
from reports.site import BuildReport, build
