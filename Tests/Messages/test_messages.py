"""messages.txt has every message, so that a changed message shows in a diff."""
from script_modules import load

messages = load("scripts/messages")


def test_texts_are_those_of_messages_txt():
    assert messages.changes() == [], "read the new ones, then run scripts/messages --update"


def test_texts_are_found_in_the_sources():
    assert len(messages.collect()) > 100


def test_a_changed_text_is_seen(tmp_path, monkeypatch):
    golden = tmp_path / "messages.txt"
    text = messages.GOLDEN.read_text(encoding="utf-8")
    golden.write_text(text.replace("nothing was overwritten", "nothing was written"), encoding="utf-8")
    monkeypatch.setattr(messages, "GOLDEN", golden)
    assert any("nothing was overwritten" in line for line in messages.changes())
