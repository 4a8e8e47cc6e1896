"""Reports: history and findings -> charts, web pages.

`reports.site.build(store, out, settings)` writes the static site.
"""
