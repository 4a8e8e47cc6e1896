"""Releases: discover, verify, pin, fetch, build.

`Catalogue` is the way in; `Installed` is what comes out. See docs/releases.md.
"""

from runners.errors import ReleaseError, UnknownRelease
from runners.releases.cache import parse_size
from runners.releases.catalogue import Catalogue, ReleaseState
from runners.releases.installed import Installed
from runners.releases.manifest import Pin
from runners.releases.pins import pins_for, verify
