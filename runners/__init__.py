"""A release to measurements: acquire, start, load, run, meter."""
