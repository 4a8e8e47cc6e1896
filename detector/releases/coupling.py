"""How the series of a family bear each other out: one tree of events per test and release.

    event      the release moves this test               prior: P(a change at r), learned over all tests and its group
      hit      ... on this server                         P(hit | event) learned per server
        move   ... and it shows in this metric            P(move | hit) learned per metric

Every series sends up its Bayes factor for a change at r and gets back the prior that all the others imply (the
sum-product messages of a tree, so nobody hears its own voice). What is learned is learned from this history alone: a
metric that does not move when the others do gets a rate near zero and then costs nothing and adds nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from detector.arrays import Bools, Floats

#: P(a series moves though its parent in the tree does not).
STRAY = 0.001
#: Prior of P(hit | event), the weight of this prior and that of P(move | hit) in events, bounds of both.
SHARED = 0.8
SHARED_WEIGHT = 5.0
SHARES = (0.01, 0.98)
#: With one server there is nobody to ask.
ALONE = 0.98
#: Shares of the tests that a release may move if it moves some, one as likely as the other; how likely it is that it
#: does, against P(a change of one test), and at most; and P(a change of one test) where it does not, likewise.
SHARES_MOVED = (0.05, 0.15, 0.4, 0.8)
EVENTFUL, EVENTFUL_MOST = 6.0, 0.6
STRAYS, STRAYS_MOST = 0.1, 0.003
#: Weight of all tests in P(a change at r) of one group, in tests.
GROUP_WEIGHT = 6.0
#: Bounds of a learned P(a change at r): with less, a test that moves alone among many cannot be believed, however sure
#: it is, since what one series shows is worth at most one over STRAY.
RATES = (0.004, 0.9)
#: Bayes factors are clipped here: no single series proves a point alone.
FACTORS = (1e-8, 1e12)
#: Log evidence for a hit and priors sent down are clipped, too.
EVIDENCE = (-40.0, 40.0)
PRIORS = (1e-5, 0.98)


@dataclass(frozen=True)
class Beliefs:
    """Probabilities after the messages have gone up and down."""

    prior: Floats
    """[metrics, servers, tests, releases] P(move) that all other series imply."""
    hit: Floats
    """[servers, tests, releases] P(the release moves this test on this server | everything)."""
    rate: Floats
    """[tests, releases] learned P(a change at r) of the test's group."""
    servers: Floats
    """[servers] learned P(hit | event)."""
    metrics: Floats
    """[metrics] learned P(move | hit)."""


def start(shape: tuple[int, int, int, int], rate: Floats, shows: Floats) -> Beliefs:
    """Beliefs before any evidence: `rate` is [releases], `shows` the prior of P(move | hit), [metrics]."""
    _, s, t, r = shape
    return Beliefs(
        prior=np.broadcast_to(rate, shape).copy(),
        hit=np.zeros((s, t, r)),
        rate=np.broadcast_to(rate, (t, r)).copy(),
        servers=np.full(s, SHARED if s > 1 else ALONE),
        metrics=shows.copy(),
    )


def _odds(p: Floats) -> Floats:
    return np.log(p / (1.0 - p))


def _chance(log_odds: Floats) -> Floats:
    return 1.0 / (1.0 + np.exp(-log_odds))


def exchange(
    bayes_factor: Floats, beliefs: Beliefs, learning: tuple[Floats, Bools, list[list[int]], Floats] | None
) -> Beliefs:
    """One round of messages up and down the tree.

    `bayes_factor` is [metrics, servers, tests, releases]. `learning`, where given, re-estimates the rates on the way
    (the M step of expectation maximisation) from the prior of P(a change at r), the releases where it is kept as it
    is, the tests of each large group, and the prior of P(move | hit).
    """
    factor = np.clip(bayes_factor, *FACTORS)
    of_metric = beliefs.metrics[:, None, None, None]
    of_server = beliefs.servers[:, None, None]
    to_hit = _up(factor, of_metric)
    hit_evidence = to_hit.sum(axis=0)
    hit_factor = np.exp(np.clip(hit_evidence, *EVIDENCE))
    to_event = _up(hit_factor, of_server)
    evidence = to_event.sum(axis=0)
    event = _chance(_odds(beliefs.rate) + evidence)
    event[:, 0] = 0.0
    rate, servers, metrics = beliefs.rate, beliefs.servers, beliefs.metrics
    if learning is not None:
        prior_rate, fixed, groups, shows = learning
        rate = _learned_rate(evidence, event, prior_rate, fixed, groups)
        both = event * _share(hit_factor, of_server)
        if servers.size > 1:
            servers = _learned_share(SHARED, both[:, :, 1:].sum(axis=(1, 2)), event[:, 1:].sum())
        if metrics.size > 1:
            shown = both * _share(factor, of_metric)
            metrics = _learned_share(shows, shown[..., 1:].sum(axis=(1, 2, 3)), both[:, :, 1:].sum())
    expected_hit = _down(_odds(rate) + evidence - to_event, servers[:, None, None])
    hit_odds = _odds(expected_hit) + hit_evidence
    prior = _down(hit_odds - to_hit, metrics[:, None, None, None])
    hit = _chance(hit_odds)
    hit[..., 0] = 0.0
    return Beliefs(prior, hit, rate, servers, metrics)


def _up(factor: Floats, given: Floats) -> Floats:
    """Log likelihood ratio of a parent from a child's Bayes factor and P(child | parent)."""
    return np.asarray(np.log((given * factor + 1.0 - given) / (STRAY * factor + 1.0 - STRAY)))


def _down(parent_odds: Floats, given: Floats) -> Floats:
    """P(child) from the log odds of its parent."""
    parent = _chance(parent_odds)
    return np.clip(parent * given + (1.0 - parent) * STRAY, *PRIORS)


def _learned_rate(evidence: Floats, event: Floats, rate: Floats, fixed: Bools, groups: list[list[int]]) -> Floats:
    """[tests, releases] P(a change at r): the mean over the shares of the tests that r may move, each as likely as all
    tests together make it.

    A rate that is learned step by step from what each test believes stays low where every test by itself is better
    explained by an outlier. Here all tests are asked at once.
    """
    moving = np.minimum(EVENTFUL * rate, EVENTFUL_MOST)
    shares = np.stack([np.minimum(STRAYS * rate, STRAYS_MOST), *(np.full(rate.size, share) for share in SHARES_MOVED)])
    prior = np.stack([1.0 - moving, *([moving / len(SHARES_MOVED)] * len(SHARES_MOVED))])
    factor = np.exp(np.clip(evidence, *EVIDENCE))
    weight = np.log(prior) + np.log(1.0 - shares[:, None] + shares[:, None] * factor).sum(axis=1)
    weight = np.exp(weight - weight.max(axis=0))
    pooled = np.clip((weight * shares).sum(axis=0) / weight.sum(axis=0), *RATES)
    pooled = np.where(fixed, rate, pooled)
    learned = np.broadcast_to(pooled, event.shape).copy()
    for members in groups:
        of_group = (GROUP_WEIGHT * pooled + event[members].sum(axis=0)) / (GROUP_WEIGHT + len(members))
        learned[members] = np.where(fixed, rate, of_group)
    return learned


def _share(factor: Floats, given: Floats) -> Floats:
    """P(child | parent, the child's own evidence)."""
    return given * factor / (given * factor + 1.0 - given)


def _learned_share(prior: Floats | float, of_child: Floats, of_parent: Floats) -> Floats:
    return np.clip((SHARED_WEIGHT * prior + of_child) / (SHARED_WEIGHT + of_parent), *SHARES)
