"""One module a page: from the snapshot to what the page's template shows. Pure."""
