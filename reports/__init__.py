"""History and findings to tables, charts and web pages."""
