"""The documentation: its links and anchors lead somewhere, and its site has every page."""

import re
from pathlib import Path

import pytest
import yaml
from scripts import script

from hcp_logscan.rules.load import load_rules
from hcp_logscan.rules.pages import FAMILIES

ROOT = Path(__file__).parents[1]
PAGES = sorted(
    path
    for pattern in ("*.md", "docs/**/*.md", "rules/*.md", "benchmarks/*.md")
    for path in ROOT.glob(pattern)
)
FENCED = re.compile(r"^ *(`{3,}).*?^ *\1`* *$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href|srcset)=\"([^\"\s]+)")


def prose(path):
    return FENCED.sub("", path.read_text(encoding="utf-8"))


def anchors(path):
    """The anchors of the headings of a page, as code hosts make them."""
    made = {}
    for heading in re.findall(r"^#{1,6} +(.*?) *#* *$", prose(path), re.MULTILINE):
        words = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("\\", "")
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        made[slug] = made.get(slug, -1) + 1
        if made[slug]:
            made[f"{slug}-{made[slug]}"] = 0
    return made.keys() | set(re.findall(r"(?:id|name)=\"([^\"]+)\"", prose(path)))


def links(path):
    return [one or other for one, other in LINK.findall(re.sub(r"`[^`\n]*`", "", prose(path)))]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_links_and_anchors_lead_somewhere(page):
    for link in links(page):
        if re.match(r"[a-z]+:", link):
            assert link.startswith(("https://", "http://", "mailto:")), link
            continue
        target, _, anchor = link.partition("#")
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), link
        assert there.is_relative_to(ROOT), link
        if anchor and there.suffix == ".md":
            assert anchor in anchors(there), link


def test_the_search_for_links_sees_what_it_should(tmp_path):
    page = tmp_path / "a.md"
    page.write_text(
        "# One `b_c` & d\n## Twice\n## Twice\n[x](y.md#z) `[no](code)`\n```\n[no](fence)\n# no\n```\n"
        '<img src="p.png">\n'
    )
    assert links(page) == ["y.md#z", "p.png"]
    assert anchors(page) == {"one-b_c--d", "twice", "twice-1"}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    module = script("tools/docs_site.py")
    made = tmp_path_factory.mktemp("build")
    module.main(made)
    return module, made


def test_every_page_is_in_the_navigation_once_and_every_entry_is_a_page(site):
    _, made = site
    nav = (made / "mkdocs.yml").read_text().partition("\nnav:\n")[2]
    named = re.findall(r"[\w./-]+\.md", nav)

    pages = [path.relative_to(made / "docs").as_posix() for path in (made / "docs").rglob("*.md")]
    assert sorted(named) == sorted(pages)
    for path in ROOT.glob("docs/**/*.md"):
        uri = path.relative_to(ROOT / "docs").as_posix().replace("rules/README", "rules/index")
        assert uri in pages


def test_rules_stand_under_their_families(site):
    _, made = site
    nav = yaml.safe_load((made / "mkdocs.yml").read_text().partition("\nnav:\n")[2])
    index, *families = next(part["Rules"] for part in nav if "Rules" in part)

    assert index == "rules/index.md"
    assert [title for part in families for title in part] == list(FAMILIES.values())
    shown = [
        page
        for part in families
        for pages in part.values()
        for one in pages
        for page in one.values()
    ]
    assert shown == [f"rules/{rule.id}.md" for rule in sorted(load_rules(), key=lambda one: one.id)]


def test_the_schemas_are_published_as_the_program_has_them(site):
    _, made = site
    for name in ("report.v1.schema.json", "triage.v1.schema.json"):
        shipped = (ROOT / "hcp_logscan" / "reporting" / name).read_bytes()
        assert (made / "docs" / "schema" / name).read_bytes() == shipped
    assert "schema/report.v1.schema.json" in (made / "docs" / "index.md").read_text()


def test_links_of_pages_from_elsewhere_lead_to_their_place_on_the_site(site):
    module, _ = site
    pages = dict(module.layout())

    def moved(text, here):
        return module.relinked(text, here, pages)

    assert moved("[a](docs/verdict.md#x) [b](https://c.d)", "README.md") == (
        "[a](verdict.md#x) [b](https://c.d)"
    )
    assert moved("[a](../../rules/README.md)", "docs/rules/README.md") == "[a](../writing-rules.md)"
    assert moved("[a](LICENSE)", "README.md") == f"[a]({module.SOURCE}/LICENSE)"
    assert moved('<img src="docs/triage.md">', "README.md") == '<img src="triage.md">'
    fence = "```\n[a](nowhere.md)\n```\n[b](docs/scale.md)"
    assert moved(fence, "README.md") == fence.replace("docs/", "")
    with pytest.raises(ValueError, match=r"nowhere\.md"):
        moved("[a](nowhere.md)", "README.md")


def test_the_notebook_becomes_a_page(site):
    _, made = site
    text = (made / "docs" / "notebook.md").read_text()

    assert text.startswith("# Triage of one run")
    assert "\n```python\nfrom hcp_logscan import demo_run, scan\n" in text
