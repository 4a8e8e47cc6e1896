"""Whether a block can be believed: others had too much of the machine, or its tests stood still. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from history.model import BlockStatus
from runners.meters.stalls import CAUSE_WORDS
from runners.sessions.lanes import TestResult
from runners.settings import Server

#: One bad test may be this many times above a limit before it spoils a block whose mean is within it.
SINGLE_TEST_TOLERANCE = 3.0


def judge(results: list[tuple[str, TestResult]], server: Server) -> tuple[BlockStatus, str]:
    """`noisy` with the reasons when tests stood still or others had too much of the machine, over the block or grossly
    in one test."""
    reasons = [*_stalled(results, server.stall_limit), *_shared(results, server)]
    return ("noisy", "; ".join(reasons)) if reasons else ("ok", "")


def _stalled(results: list[tuple[str, TestResult]], limit: float) -> Iterator[str]:
    """Why the time that tests stood still spoils the block; nothing when it does not."""
    stalls = [(result.stalls, name) for name, result in results if result.stalls]
    seconds = sum(each.window_s for each, _ in stalls)
    if not seconds:
        return
    mean = sum(each.lost_s for each, _ in stalls) / seconds
    worst, where = max(stalls, key=lambda each: each[0].lost_share)
    if mean > limit or worst.lost_share > SINGLE_TEST_TOLERANCE * limit:
        causes = " and ".join(CAUSE_WORDS[cause] for cause in worst.causes)
        yield (
            f"tests stood still for {100 * mean:.1f} % of the block (limit {100 * limit:.0f} %), "
            f"at worst {worst.lost_s:.2f} of {worst.window_s:.1f} s in {where}: {causes}"
        )


def _shared(results: list[tuple[str, TestResult]], server: Server) -> Iterator[str]:
    """Why what others had of the machine spoils the block; nothing when it does not."""
    timed = [(name, result.noise, result.seconds) for name, result in results if result.noise]
    seconds = sum(each for _, _, each in timed)
    for what, limit in (("steal", server.steal_limit), ("foreign", server.foreign_limit)):
        shares = [(getattr(noise, what), each, name) for name, noise, each in timed]
        noise_shares = [(share, each, name) for share, each, name in shares if share is not None]
        if not noise_shares:
            continue
        mean = sum(share * each for share, each, _ in noise_shares) / seconds
        worst, _, where = max(noise_shares)
        if mean > limit or worst > SINGLE_TEST_TOLERANCE * limit:
            label = "steal" if what == "steal" else "foreign load"
            yield (
                f"{label} {100 * mean:.1f} % of the CPUs over the block (limit {100 * limit:.0f} %), "
                f"at worst {100 * worst:.1f} % in {where}"
            )
