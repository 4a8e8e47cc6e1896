"""The Atom feed of findings (RFC 4287). Pure; times come from the history, so the same history gives the same feed."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from xml.etree import ElementTree as ET

from history.exporters.junit import clean
from history.model import Finding
from presentation import sentences
from reports.pages.finding_summary import finding_summary
from reports.render import capitalized_first
from reports.settings import ReportSettings
from reports.snapshot import Snapshot

ATOM = "http://www.w3.org/2005/Atom"
#: Entries in the feed: a reader polls it often.
MAX_ENTRIES = 50
#: Where the history has neither: a fixed time, since now would change the bytes.
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def seen(snapshot: Snapshot) -> dict[tuple[str, str], datetime]:
    """When each release was first measured: a finding cannot be older, and this does not change with later sessions."""
    first_measured: dict[tuple[str, str], datetime] = {}
    for ran in snapshot.ran:
        release = (ran.run.release.dbms, ran.run.release.version)
        if ran.ended and (release not in first_measured or ran.ended < first_measured[release]):
            first_measured[release] = ran.ended
    return first_measured


def feed(snapshot: Snapshot, settings: ReportSettings) -> str:
    """Newest first by the last event of each finding, or by when its release was first measured.

    Ids are made of finding keys and never change.
    """
    ET.register_namespace("", ATOM)
    root = ET.Element(f"{{{ATOM}}}feed")

    def add(parent: ET.Element, tag: str, text: str = "", **attributes: Any) -> ET.Element:
        child = ET.SubElement(parent, f"{{{ATOM}}}{tag}", attributes)
        child.text = text or None
        return child

    base = settings.site_url.rstrip("/")
    add(root, "title", f"{settings.title}: findings")
    add(root, "id", f"{base}/feed.xml" if base else "urn:pointdrop:findings")
    add(root, "link", rel="self", href=f"{base}/feed.xml" if base else "feed.xml")
    add(ET.SubElement(root, f"{{{ATOM}}}author"), "name", settings.title)

    first_seen = seen(snapshot)

    def updated(finding: Finding) -> datetime:
        events = snapshot.events_of(finding)
        return events[-1].at if events else first_seen.get((finding.dbms, finding.release), EPOCH)

    told = [finding for finding in snapshot.findings if not finding.folded_under]
    entries = sorted(told, key=lambda finding: (updated(finding), finding.key), reverse=True)[:MAX_ENTRIES]
    add(root, "updated", max((updated(finding) for finding in entries), default=EPOCH).isoformat())
    for finding in entries:
        row = finding_summary(finding, settings.metrics, snapshot.events_of(finding), snapshot.links_of(finding))
        entry = ET.SubElement(root, f"{{{ATOM}}}entry")
        add(entry, "title", f"{row.shape} {row.title}")
        add(entry, "id", f"urn:pointdrop:finding:{finding.key}")
        add(entry, "updated", updated(finding).isoformat())
        add(entry, "link", href=f"{base}/{row.address}" if base else row.address)
        add(entry, "category", term=finding.kind)
        sentence = sentences.summary(finding, row.lead) if row.lead else row.title
        add(entry, "summary", f"{sentence} {capitalized_first(row.sure)}.")
    ET.indent(root)
    return '<?xml version="1.0" encoding="utf-8"?>\n' + clean(ET.tostring(root, encoding="unicode")) + "\n"
