"""Changes between releases: short lines, many tests, everything that was measured together judged together."""
