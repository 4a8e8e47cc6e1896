"""Series to findings: noise, changepoints, confirmation, attribution. Pure: values in, results with warnings out."""

from detector.detection import detect
from detector.settings import DetectorSettings
