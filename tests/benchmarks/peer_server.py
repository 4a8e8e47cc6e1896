"""One detector as a server: `peer_server.py NAME` reads `{"values": [...]}` lines and answers
`{"indices": [...], "seconds": 0.01}`.

It runs in the detector's own environment and therefore imports nothing of Pointdrop. Every detector has the settings
it has out of the box, those of its documentation where it has none.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time


def otava():
    from otava.analysis import compute_change_points

    def find(values):
        found, _ = compute_change_points(values, window_len=50, max_pvalue=0.001, min_magnitude=0.0)
        return [change.index for change in found]

    return find


def mongodb():
    import numpy as np
    from signal_processing_algorithms.energy_statistics.energy_statistics import e_divisive

    def find(values):
        np.random.seed(1)
        return [int(index) for index in e_divisive(np.array(values), pvalue=0.05, permutations=100)]

    return find


def asv():
    from asv.step_detect import detect_steps

    return lambda values: [start for start, *_ in detect_steps(values)[1:]]


def ruptures_pelt():
    """Least squares with the Bayesian information criterion; ruptures itself has no default penalty."""
    import numpy as np
    import ruptures

    def find(values):
        x = np.log(np.array(values))
        noise = 1.4826 * np.median(np.abs(np.diff(x))) / math.sqrt(2.0)
        breaks = ruptures.Pelt(model="l2", min_size=2, jump=1).fit(x / noise).predict(pen=2.0 * math.log(len(x)))
        return breaks[:-1]

    return find


DETECTORS = {"otava": otava, "mongodb": mongodb, "asv": asv, "ruptures": ruptures_pelt}


def main():
    logging.disable(logging.WARNING)
    find = DETECTORS[sys.argv[1]]()
    for line in sys.stdin:
        values = json.loads(line)["values"]
        start = time.perf_counter()
        indices = sorted(int(index) for index in find(values) if 0 < index < len(values))
        print(json.dumps({"indices": indices, "seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    main()
