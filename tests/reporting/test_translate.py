"""Texts in another language: what was said, how it is redacted, and what stays as it is."""

import pickle
import threading
from dataclasses import replace

import pytest
import samples

from hcp_logscan.model.said import N_, joined, remembering, say, say_n
from hcp_logscan.reporting import tongue
from hcp_logscan.reporting.json import render_json
from hcp_logscan.reporting.redact import redact
from hcp_logscan.reporting.tongue import speaking
from hcp_logscan.reporting.translate import translate

TOKEN = "hf_" + "aB3dE5gH7jK9mN1pQ3rS5tU7vW9xY1zA3b"
CHINESE = {
    "{who} broke first {during}: {what}.": "{during}，{who} 最先出错：{what}。",
    "rank {rank} on {node}": "节点 {node} 上的 rank {rank}",
    "while loading the checkpoint": "加载检查点时",
    "{count:,} ranks": "{count:,} 个 rank",
    "; ": "；",
}


class Catalogue:
    def gettext(self, text):
        return CHINESE.get(text, text)

    def ngettext(self, one, many, count):
        return self.gettext(many)


@pytest.fixture(autouse=True)
def _chinese(monkeypatch):
    monkeypatch.setattr("hcp_logscan.reporting.translate.catalogue", lambda lang: Catalogue())


def reasoned(*reasons, book):
    data = samples.empty()
    return replace(data, verdict=replace(data.verdict, reasons=reasons), said=book)


def chinese(data):
    return translate(data, "zh").verdict.reasons


def test_a_said_text_is_plain_english():
    text = say("rank {rank} saw {what!r}", rank=3, what="x")
    assert type(text) is str
    assert text == "rank 3 saw 'x'"


def test_nothing_is_remembered_where_no_book_is_open():
    with remembering() as book:
        pass
    say("rank {rank}", rank=3)
    assert book == {}


def test_each_thread_has_its_own_book():
    with remembering() as book:
        thread = threading.Thread(target=say, args=("elsewhere",))
        thread.start()
        thread.join()
        say("here")
    assert list(book) == ["here"]


def test_values_that_were_said_are_translated_within_a_text_and_log_text_is_not():
    with remembering() as book:
        text = say(
            "{who} broke first {during}: {what}.",
            who=say("rank {rank} on {node}", rank=3, node="gpu-node07"),
            during=N_("while loading the checkpoint"),
            what="OSError: {who} is while loading",
        )
    assert text == (
        "rank 3 on gpu-node07 broke first while loading the checkpoint: "
        "OSError: {who} is while loading."
    )
    assert chinese(reasoned(text, book=book)) == (
        "加载检查点时，节点 gpu-node07 上的 rank 3 最先出错：OSError: {who} is while loading。",
    )


def test_joined_texts_and_counts_are_translated_one_by_one():
    with remembering() as book:
        many = say_n("{count} rank", "{count:,} ranks", count=1200)
        text = joined("; ", [many, "log text"])
    assert text == "1,200 ranks; log text"
    assert chinese(reasoned(text, book=book)) == ("1,200 个 rank；log text",)


def test_a_text_that_nobody_said_stays():
    assert chinese(reasoned("Unheard of.", book={})) == ("Unheard of.",)


def test_english_is_the_report_itself():
    data = reasoned("x", book={})
    assert translate(data, "en") is data


def test_a_report_with_its_book_survives_pickling():
    with remembering() as book:
        text = say("rank {rank}", rank=3)
    data = reasoned(text, book=book)
    assert pickle.loads(pickle.dumps(data.said)) == data.said


@pytest.mark.parametrize("level", ["secrets", "all"])
def test_a_secret_in_a_value_is_hidden_in_the_translation(level):
    with remembering() as book:
        text = say(
            "{who} broke first {during}: {what}.",
            who=say("rank {rank} on {node}", rank=3, node="gpu-node07"),
            during=N_("while loading the checkpoint"),
            what=f"OSError: token {TOKEN} refused",
        )
    data = redact(reasoned(text, book=book), level, ["gpu-node07"])
    (shown,) = chinese(data)
    assert TOKEN not in repr(data)
    assert "[redacted hugging face token 1]" in shown
    assert "加载检查点时" in shown
    assert ("gpu-node07" in shown) is (level == "secrets")


def test_a_secret_that_only_the_english_words_give_away_is_never_translated_back():
    with remembering() as book:
        text = say("the password is {value}", value="hunter2correct")
    data = redact(reasoned(text, book=book))
    (english,) = data.verdict.reasons
    assert "hunter2correct" not in english
    assert chinese(data) == (english,)
    assert "hunter2correct" not in repr(data)


def test_redaction_hides_and_numbers_the_same_with_and_without_a_book():
    with remembering() as book:
        text = say("it says {what}", what=f"token={TOKEN}")
        say("nobody shows {what}", what=TOKEN.replace("a", "b"))
    bare = redact(reasoned(text, book={}))
    told = redact(reasoned(text, book=book))
    assert render_json(told) == render_json(bare)
    assert told.redaction == bare.redaction


def test_a_language_ends_with_its_rendering_and_belongs_to_its_thread():
    seen = []
    with speaking("zh"):
        thread = threading.Thread(target=lambda: seen.append(tongue.lang()))
        thread.start()
        thread.join()
        assert tongue.lang() == "zh"
    assert [*seen, tongue.lang()] == ["en", "en"]
