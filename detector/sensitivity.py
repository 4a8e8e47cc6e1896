"""The smallest change a series could have shown, so that silence can be told from blindness.

A change of size d between n1 and n2 releases of noise sd is found when its Bayes factor lifts the prior over the
threshold. The factor of an observed step x with standard error e and slab width t is about
`exp(x^2 / 2 e^2) e / t`; solved for x, plus the 0.84 standard errors that a change needs to be seen four times in five.
"""

from __future__ import annotations

import math

#: z of 0.8: the probability of being found that the smallest detectable change is defined by.
POWER_Z = 0.8416
#: P(a change) a single test starts from where nothing else moves.
PRIOR = 0.02


def smallest_detectable(
    sd: float, before: int, after: int, slab: float, floor: float, threshold: float, prior: float = PRIOR
) -> float:
    """Smallest log step found with probability 0.8 between `before` and `after` releases of noise `sd`.

    `slab` is the typical size of a change, `floor` the smallest step that counts, `threshold` the
    probability asked for.

    >>> round(smallest_detectable(0.008, 6, 1, 0.06, 0.012, 0.62), 3)
    0.038
    >>> round(smallest_detectable(0.008, 6, 6, 0.06, 0.012, 0.62), 3)
    0.021
    """
    error = sd * math.sqrt(1.0 / max(before, 1) + 1.0 / max(after, 1))
    needed = math.log(threshold / (1.0 - threshold)) - math.log(prior / (1.0 - prior))
    occam = math.log(math.hypot(slab, error) / error)
    return max(floor, error * (math.sqrt(2.0 * max(needed + occam, 0.0)) + POWER_Z))
