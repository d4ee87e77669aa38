"""The catalogue of translations: complete, current, and compiled as it stands."""

import ast
import gettext
import io
import re
import string
from pathlib import Path

import pytest

from hcp_logscan.reporting.tongue import LANGS, catalogue
from hcp_logscan.sources import kinds

babel = pytest.importorskip("babel", reason="extra dev: pip install -e '.[dev]'")

from babel.messages.pofile import read_po  # noqa: E402

from hcp_logscan.reporting import messages  # noqa: E402
from hcp_logscan.reporting.translate import KINDS  # noqa: E402

OTHERS = LANGS[1:]


def po(lang):
    with messages.place(lang, "po").open("rb") as file:
        return read_po(file, locale=lang, domain="hcp_logscan")


def fields(text):
    return {(name, spec) for _, name, spec, _ in string.Formatter().parse(text) if name is not None}


def forms(message):
    """Pairs of what is translated and a translation of it."""
    if isinstance(message.id, str):
        return [(message.id, message.string)]
    return [(message.id[1], form) for form in message.string]


@pytest.mark.parametrize("lang", OTHERS)
def test_every_text_is_translated_and_every_translation_is_of_a_text(lang):
    wanted = {text if isinstance(text, str) else text[0] for text in messages.texts()}
    held = {m.id if isinstance(m.id, str) else m.id[0] for m in po(lang) if m.id}
    assert held == wanted, "make messages"


@pytest.mark.parametrize("lang", OTHERS)
def test_no_translation_is_empty_fuzzy_or_obsolete(lang):
    found = po(lang)
    assert not found.obsolete
    for message in found:
        if message.id:
            assert not message.fuzzy, message.id
            assert all(form for _, form in forms(message)), message.id


@pytest.mark.parametrize("lang", OTHERS)
def test_a_translation_has_the_fields_of_its_text(lang):
    for message in po(lang):
        if message.id:
            for text, form in forms(message):
                assert fields(form) == fields(text), text


@pytest.mark.parametrize("lang", OTHERS)
def test_the_compiled_catalogue_says_what_the_edited_one_says(lang):
    assert messages.place(lang, "mo").read_bytes() == messages.mo(po(lang)), "make messages"
    with messages.place(lang, "mo").open("rb") as file:
        compiled = gettext.GNUTranslations(file)
    for message in po(lang):
        if message.id and isinstance(message.id, str):
            assert compiled.gettext(message.id) == message.string


@pytest.mark.parametrize("lang", OTHERS)
def test_writing_the_catalogue_again_changes_nothing(lang):
    assert messages.po(messages.updated(lang)) == messages.place(lang, "po").read_bytes()


def test_chinese_has_full_width_punctuation_and_a_blank_beside_latin_words():
    for message in po("zh"):
        for text, form in forms(message) if message.id else ():
            bare = re.sub(r"`[^`]*`|\{[^}]*\}|<[^>]*>", "", form)
            assert not re.search(r"[\u4e00-\u9fff][,;:!?]", bare), text
            assert not re.search(r"[\u4e00-\u9fff][A-Za-z]|[A-Za-z][\u4e00-\u9fff]", bare), text


def test_every_kind_of_skipped_file_has_a_translation():
    tree = ast.parse(Path(kinds.__file__).read_text(encoding="utf-8"))
    named = {
        node.value.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Return)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    }
    assert named | set(kinds._BY_SUFFIX) <= set(KINDS)


def test_every_noun_that_is_counted_has_a_translation():
    nouns = set()
    for path in messages.PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "plural":
                nouns |= {
                    each.value
                    for each in ast.walk(node.args[1])
                    if isinstance(each, ast.Constant) and isinstance(each.value, str)
                }
    known = catalogue("zh")
    assert len(nouns) > 10
    for noun in nouns:
        assert known.gettext(f"{{count:,}} {noun}") != f"{{count:,}} {noun}", noun


def test_texts_within_texts_are_found():
    tree = ast.parse('say("a {b}", b=joined(", ", (say("c") for _ in "")))\n_("d")\nn_("e", "f")')
    assert list(messages._marked(tree)) == ["a {b}", ", ", "c", "d", ("e", "f")]


def test_a_text_without_translation_makes_the_exit_code_1(monkeypatch, tmp_path, capsys):
    for suffix in ("po", "mo"):
        target = tmp_path / "zh" / "LC_MESSAGES"
        target.mkdir(parents=True, exist_ok=True)
        (target / f"hcp_logscan.{suffix}").write_bytes(messages.place("zh", suffix).read_bytes())
    monkeypatch.setattr(messages, "LOCALES", tmp_path)
    assert messages.main() == 0
    known = list(messages.texts())
    monkeypatch.setattr(messages, "texts", lambda: iter([*known, "a new text", ("one", "many")]))
    assert messages.main() == 1
    assert "'a new text' has no translation" in capsys.readouterr().err
    with io.BytesIO((tmp_path / "zh" / "LC_MESSAGES" / "hcp_logscan.po").read_bytes()) as file:
        assert read_po(file).get("a new text") is not None
