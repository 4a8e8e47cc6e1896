"""Meters: what a test costs the machine and the server, an operation at a time."""

from runners.meters.fold import Noise, foreign_noise, per_operation
from runners.meters.proc import Meter
from runners.meters.reading import Cpu, Disk, Reading

__all__ = ["Cpu", "Disk", "Meter", "Noise", "Reading", "foreign_noise", "per_operation"]
