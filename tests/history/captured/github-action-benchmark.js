window.BENCHMARK_DATA = {
  "lastUpdate": 1767702600000,
  "repoUrl": "https://github.com/example/demo",
  "entries": {
    "Suite": [
      {
        "commit": {"author": {"name": "A"}, "id": "3f2a9c1d44e05b7c", "message": "one", "timestamp": "2026-01-05T12:30:00Z", "url": ""},
        "date": 1767616200000,
        "tool": "customBiggerIsBetter",
        "benches": [{"name": "point-query", "value": 100.5, "unit": "ops"}]
      },
      {
        "commit": {"author": {"name": "A"}, "id": "77aa9c1d44e05b7c", "message": "two", "timestamp": "2026-01-06T12:30:00Z", "url": ""},
        "date": 1767702600000,
        "tool": "customBiggerIsBetter",
        "benches": [{"name": "point-query", "value": 90.25, "unit": "ops"}]
      }
    ]
  }
}
