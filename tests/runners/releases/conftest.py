"""A vendor's site with three releases of MariaDB, and the catalogue of a project that measures them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from runners.releases import Catalogue
from tests.runners.releases.vendorsite import Site, served

VERSIONS = {"10.11.5": "2023-08-14", "10.11.9": "2024-08-08", "11.4.3": "2024-08-08"}


@pytest.fixture
def site() -> Iterator[Site]:
    with served() as site:
        yield site


@pytest.fixture
def project(tmp_path: Path, site: Site) -> Path:
    """A configuration directory whose MariaDB comes from the site."""
    site.mariadb(VERSIONS)
    folder = tmp_path / "configs" / "dbms" / "mariadb"
    folder.mkdir(parents=True)
    (folder / "releases.toml").write_text(
        f"""# kept
[[source]]
name = "tarball"
kind = "tarball"
vendor = "mariadb"
address = "{site.address}/rest-api/mariadb"
files = ['mariadb-{{version}}-linux-systemd-x86_64\\.tar\\.gz']
subtree = "*"
"""
    )
    return tmp_path / "configs"


@pytest.fixture
def catalogue(project: Path, tmp_path: Path) -> Iterator[Catalogue]:
    catalogue = Catalogue(project, tmp_path / "state")
    yield catalogue
    catalogue.close()
