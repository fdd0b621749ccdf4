"""The page of a zoo: what it says, that it obeys no name, and that a real browser sorts it."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest
from kit.reports.nights import zoo_history
from tilefarm.errors import OutputError

from driver.jobs.nightly.page import write_site
from driver.jobs.nightly.records import Row, Verdict
from driver.jobs.nightly.words import SIGNS, row_file

_HOSTILE = """<script>alert(1)</script>"'&\x1b[2J../../x"""
_BROWSER = shutil.which("chromium") or shutil.which("google-chrome")


class Tags(HTMLParser):
    """What a browser would see."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.scripts += tag == "script"
        self.links += [value or "" for name, value in attrs if tag == "a" and name == "href"]


def pages(folder: Path) -> dict[Path, Tags]:
    found = {}
    for path in folder.rglob("*.html"):
        found[path] = Tags()
        found[path].feed(path.read_text("utf-8"))
    return found


@pytest.mark.parametrize("nights", [0, 1, 12])
def test_every_link_leads_somewhere_and_every_page_has_the_one_script(
    tmp_path: Path, nights: int
) -> None:
    write_site(zoo_history(nights), tmp_path)
    found = pages(tmp_path)
    assert len(found) == 1 + 4 + nights
    for path, tags in found.items():
        assert tags.scripts == 1
        for link in tags.links:
            file, _, anchor = link.partition("#")
            aim = (path.parent / file).resolve() if file else path
            assert aim.is_file(), f"{path.name} links to {link}"
            assert not anchor or "=" in anchor or f'id="{anchor}"' in aim.read_text("utf-8")


def test_a_name_is_no_markup_no_path_and_moves_no_cursor(tmp_path: Path) -> None:
    write_site(zoo_history(3, hostile=_HOSTILE), tmp_path)
    assert {path.parent.name for path in tmp_path.rglob("*.html")} == {
        tmp_path.name, "rows", "nights",
    }  # fmt: skip
    for path, tags in pages(tmp_path).items():
        assert tags.scripts == 1
        assert "\x1b" not in path.read_text("utf-8")
    json.loads((tmp_path / "nights.json").read_text("utf-8"))
    assert "\x1b" not in (tmp_path / "feed.xml").read_text("utf-8")


def test_rows_whose_names_look_alike_have_pages_of_their_own() -> None:
    names = ["net", "Net", "net ", "ñet", "n/et", "net" * 40, "net" * 41, "", "net on"]
    files = {row_file(Row(name, "sim")) for name in names} | {row_file(Row("net", "on-sim"))}
    assert len(files) == len(names) + 1
    assert all(re.fullmatch(r"[a-z0-9.-]+\.html", file) for file in files)


def test_each_verdict_has_a_sign_of_its_own() -> None:
    assert set(SIGNS) == set(Verdict)
    assert len(set(SIGNS.values())) == len(SIGNS)


def test_the_front_page_leads_with_the_last_night(tmp_path: Path) -> None:
    zoo = zoo_history(20)
    text = write_site(zoo, tmp_path).read_text("utf-8")
    assert zoo.nights[-1].name[:10] in text[: text.index("<table")]
    assert text.index("<table class=sortable") < text.index("What changed")


def test_the_row_page_marks_where_it_became_slower(tmp_path: Path) -> None:
    zoo = zoo_history(20)
    write_site(zoo, tmp_path)
    text = (tmp_path / "rows" / row_file(zoo.rows[0].row)).read_text("utf-8")
    assert 'class="step"' in text
    assert "conv1 takes 12.0 % more" in text
    assert "+3.00 %" in text


def test_the_feed_has_the_changes_the_newest_first(tmp_path: Path) -> None:
    write_site(zoo_history(20), tmp_path)
    space = {"atom": "http://www.w3.org/2005/Atom"}
    entries = Xml.parse(tmp_path / "feed.xml").getroot().findall("atom:entry", space)
    times = [entry.findtext("atom:updated", "", space) for entry in entries]
    assert times == sorted(times, reverse=True)
    assert any("slower +3.00 %" in entry.findtext("atom:title", "", space) for entry in entries)


def test_a_night_that_has_its_page_keeps_it(tmp_path: Path) -> None:
    zoo = zoo_history(5)
    write_site(zoo, tmp_path)
    first, *_, last = sorted((tmp_path / "nights").iterdir())
    first.write_text("as it was")
    last.write_text("not yet")
    write_site(zoo, tmp_path)
    assert first.read_text() == "as it was"
    assert last.read_text() != "not yet"


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "page").write_text("a file")
    with pytest.raises(OutputError, match="page"):
        write_site(zoo_history(1), tmp_path / "page")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of a month."""
    folder = tmp_path_factory.mktemp("site")
    write_site(zoo_history(30, models=6), folder)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(_BROWSER is None, reason="no Chromium here")
class TestInABrowser:
    """Headless Chromium: it loads, sorts, filters and draws without a word on its console."""

    def shown(self, folder: Path, page: str) -> str:
        """The document as it is after its script."""
        assert _BROWSER is not None
        done = subprocess.run(
            [
                _BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic",
                "--no-first-run", "--disable-background-networking", "--disable-component-update",
                "--disable-sync", f"--user-data-dir={folder}/profile", "--enable-logging=stderr",
                "--dump-dom", f"file://{folder}/{page}",
            ],
            capture_output=True,
            text=True,
            timeout=120,
            check=True,
        )  # fmt: skip
        assert "CONSOLE" not in done.stderr, done.stderr
        return done.stdout

    def test_it_sorts_and_filters_by_its_address(self, site: Path) -> None:
        text = self.shown(site, "index.html#sort=-0&find=model")
        first = text[text.index("<tbody>") :]
        assert first.index("model5") < first.index("model0")
        assert 'aria-sort="descending"' in text
        text = self.shown(site, "index.html#find=model3")
        rows = re.findall(r"<tr[^>]*>", text[text.index("<tbody>") : text.index("</tbody>")])
        assert sum("hidden" not in row for row in rows) == 1
        assert "1 of 6" in text

    @pytest.mark.parametrize("kind", ["rows", "nights"])
    def test_the_other_pages_load(self, site: Path, kind: str) -> None:
        page = sorted((site / kind).iterdir())[-1]
        text = self.shown(site, f"{kind}/{page.name}")
        assert 'class="scripted"' in text
        assert "<button" in text
