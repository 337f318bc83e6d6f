"""Keys in a real browser: of any layout, held down, of an input method, and with other keys."""

import pytest
from playwright.sync_api import expect

from stepsight.storage.judgments.judgments import save_judgments
from stepsight.storage.labelling.campaigns import create_campaign
from stepsight.storage.labelling.plan import CampaignPlan
from stepsight.storage.people.users import local_user
from tests.app.browser.acts import listening, run_script, score
from tests.app.browser.test_annotate import campaign, events, here, start, stored, trace
from tests.serving import served
from tests.storage.labelling.samples import PRMBENCH_KINDS
from tests.storage.samples import add, evaluator, judge

_READ = """({ readKey }, cases) =>
  cases.map(([key, code, options]) => readKey(new KeyboardEvent("keydown", { key, code, ...options })))"""
SHIFT, CTRL, META, ALT = ({name: True} for name in ("shiftKey", "ctrlKey", "metaKey", "altKey"))


@pytest.fixture(scope="module")
def address(store, evaluators):
    with served(store, evaluators) as base:
        yield base


CASES = [
    ("j", "KeyJ", {}, "j"),
    ("J", "KeyJ", SHIFT, "J"),
    # Caps Lock, alone and with Shift; on a Mac the letter stays a capital one.
    ("J", "KeyJ", {}, "j"),
    ("j", "KeyJ", SHIFT, "J"),
    # Dvorak, AZERTY and QWERTZ have Latin letters, elsewhere.
    ("j", "KeyC", {}, "j"),
    ("z", "KeyW", {}, "z"),
    ("z", "KeyY", {}, "z"),
    ("é", "Digit2", {}, "é"),
    ("&", "Digit1", {}, "&"),
    ("1", "Digit1", SHIFT, "1"),
    ("²", "Backquote", {}, "²"),
    ("ü", "BracketLeft", {}, "ü"),
    # Russian, Ukrainian, Greek, Hebrew, Arabic, Georgian, Hindi, Korean, Japanese (kana).
    ("о", "KeyJ", {}, "j"),
    ("О", "KeyJ", SHIFT, "J"),
    ("О", "KeyJ", {}, "j"),
    ("і", "KeyS", {}, "s"),
    ("ξ", "KeyJ", {}, "j"),
    ("ח", "KeyJ", {}, "j"),
    ("ت", "KeyJ", {}, "j"),
    ("ჯ", "KeyJ", {}, "j"),
    ("र", "KeyJ", {}, "j"),
    ("ा", "KeyE", {}, "e"),
    ("ㅓ", "KeyJ", {}, "j"),
    ("ま", "KeyJ", {}, "j"),
    ("№", "Digit3", SHIFT, "№"),
    ("£", "Digit3", SHIFT, "£"),
    ("؟", "Slash", SHIFT, "?"),
    # Digits: number pad, full width, Arabic, Persian, Devanagari; Thai ones are elsewhere, as they mean 1 and 2.
    ("3", "Numpad3", {}, "3"),
    ("３", "Digit3", {}, "3"),
    ("٣", "Digit3", {}, "3"),
    ("۳", "Digit3", {}, "3"),
    ("३", "Digit3", {}, "3"),
    ("๑", "Digit2", SHIFT, "1"),
    ("๒", "Digit3", SHIFT, "2"),
    ("ๅ", "Digit1", {}, "1"),
    ("ｊ", "KeyJ", {}, "j"),
    ("Ｊ", "KeyJ", SHIFT, "J"),
    ("？", "Slash", SHIFT, "?"),
    ("\u3000", "Space", {}, " "),
    # With other keys.
    ("z", "KeyZ", CTRL, "Ctrl+z"),
    ("Z", "KeyZ", CTRL, "Ctrl+z"),
    ("я", "KeyZ", CTRL, "Ctrl+z"),
    ("z", "KeyZ", META, "Ctrl+z"),
    ("Z", "KeyZ", CTRL | SHIFT, "Ctrl+Z"),
    ("Enter", "Enter", CTRL | SHIFT, "Ctrl+Shift+Enter"),
    ("Enter", "NumpadEnter", SHIFT, "Shift+Enter"),
    (" ", "Space", SHIFT, "Shift+ "),
    ("ArrowUp", "ArrowUp", ALT, "Alt+ArrowUp"),
    ("€", "KeyE", {"modifierAltGraph": True}, "Alt+€"),
    ("ε", "KeyE", {"modifierAltGraph": True}, "Alt+e"),
    ("³", "Digit3", CTRL | ALT, "Ctrl+Alt+³"),
    ("?", "Slash", SHIFT, "?"),
    ("+", "Equal", SHIFT, "+"),
    # No keys of ours.
    ("Shift", "ShiftLeft", SHIFT, ""),
    ("Control", "ControlLeft", CTRL, ""),
    ("AltGraph", "AltRight", {}, ""),
    ("Process", "Digit1", {"isComposing": True, "keyCode": 229}, ""),
    ("Enter", "Enter", {"isComposing": True}, ""),
    ("Enter", "Enter", {"keyCode": 229}, ""),
    ("Escape", "Escape", {"keyCode": 229}, ""),
    ("", "", {}, ""),
    ("Dead", "Quote", {}, "Dead"),
    ("Unidentified", "", {}, "Unidentified"),
]
"""Keys, codes and further properties of events, and what `readKey` says of them."""


def test_a_key_is_what_it_enters_or_else_where_it_is(browser):
    read = run_script(browser, "shared/keys.js", _READ, [case[:3] for case in CASES])
    assert read == [case[3] for case in CASES]


def hold(page, *keys, times=12):
    """Hold keys down while the system repeats the last of them `times` times."""
    for key in keys[:-1]:
        page.keyboard.down(key)
    for _ in range(1 + times):
        page.keyboard.down(keys[-1])
        page.wait_for_timeout(10)
    for key in reversed(keys):
        page.keyboard.up(key)


def suggesting(store, name, traces):
    """A campaign whose steps all have suggested labels, so that a trace can be submitted unread."""
    stored = add(store, [trace(2, f"{name} {place}") for place in range(traces)], name)
    judged = evaluator(store, f"suggests to {name}")
    save_judgments(store, judged.id, [judge(one, "offline") for one in stored])
    plan = CampaignPlan(
        name=name,
        dataset=name,
        guideline="Label.",
        ordering="file",
        shows="scores",
        evaluator=judged.id,
        suggests=True,
        after_submission="nothing",
        error_kinds=PRMBENCH_KINDS,
    )
    return create_campaign(store, plan, local_user(store))


def submitted(store, page, made, count):
    """So many traces are submitted, and the page shows the next one, with its first step current."""
    expect(page.locator(".q, #problem, h1").first).to_be_attached()
    expect(page.get_by_text(f"What is the problem {made.name} {count}?")).to_be_visible()
    here(page, 0)
    assert len(events(store, made, "submit")) == count


@pytest.mark.slow
def test_enter_held_down_submits_one_trace(store, page):
    made = suggesting(store, "held", 5)
    start(page, made)
    expect(page.locator("ol.steps > li[data-kept=suggested] .kept")).to_have_text(["suggested"] * 2)
    hold(page, "Enter", times=40)
    submitted(store, page, made, 1)
    page.keyboard.press("Enter")
    submitted(store, page, made, 2)
    page.get_by_role("button", name="Submit").focus()
    hold(page, "Enter", times=40)
    submitted(store, page, made, 3)


@pytest.mark.slow
def test_a_key_held_down_acts_once_unless_it_moves(store, page):
    made = campaign(store, trace(4, "held once"))
    start(page, made)
    hold(page, "1")
    here(page, 1)
    hold(page, "4")
    hold(page, "4", times=11)
    stored(page)
    assert events(store, made) == [("label", 0, "neg"), ("error", 0, "redundency"), ("error", 0, None)]
    hold(page, "j")
    here(page, 3)
    # What a key opens, it does not type into.
    hold(page, "c")
    expect(page.get_by_label("Comment on step 4", exact=True).last).to_have_value("")
    page.keyboard.press("Escape")
    hold(page, "z")
    expect(page.locator(".said")).to_have_text("There is nothing to undo.")
    hold(page, "x")
    expect(page.locator("form[data-panel=skip] input")).to_have_value("")
    page.keyboard.type("bad")
    hold(page, "Enter")
    expect(page.get_by_text("Nothing is left")).to_be_visible()
    assert events(store, made, "skip") == [("skip", None, "bad")]


def press_synthetic(page, key, **options):
    """A key as Safari's input method gives it, which no key of Chromium's is."""
    page.evaluate(
        """([key, options]) => document.activeElement.dispatchEvent(
          new KeyboardEvent("keydown", { key, code: key, bubbles: true, cancelable: true, ...options }))""",
        [key, options],
    )


def test_a_key_that_ends_a_composition_stays_in_its_field(store, page):
    made = campaign(store, trace(2, "composed"))
    start(page, made)
    page.keyboard.press("c")
    text = page.get_by_label("Comment on step 1", exact=True).last
    page.keyboard.type("にほん")
    press_synthetic(page, "Enter", keyCode=229)
    press_synthetic(page, "Escape", isComposing=True)
    expect(text).to_be_focused()
    assert events(store, made) == []
    page.keyboard.press("Enter")
    stored(page)
    assert events(store, made) == [("comment", 0, "にほん")]


def test_keys_work_on_a_russian_keyboard_and_with_caps_lock(store, page):
    made = campaign(store, trace(4, "russian"))
    start(page, made)
    for key, code in (("о", "KeyJ"), ("J", "KeyJ"), ("л", "KeyK")):
        press_synthetic(page, key, code=code)
    here(page, 1)
    press_synthetic(page, "٣", code="Digit3")
    press_synthetic(page, "Z", code="KeyZ")
    stored(page)
    assert events(store, made) == [("label", 1, "pos"), ("label", 1, None)]
    # What AltGr enters is a character of its own.
    press_synthetic(page, "ε", code="KeyE", modifierAltGraph=True)
    expect(page.get_by_label("Step 2 as it should be")).to_be_hidden()


def scores(page):
    """The requests for scores that the page sends from now on."""
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if "/score/score" in request.url else None)
    return sent


def test_keys_held_down_score_once(page):
    score(page, "Count.", "1. One.\n2. Two.")
    expect(page.locator("ol.steps > li")).to_have_count(2)
    sent = scores(page)
    page.get_by_label("Problem").fill("Count to two.")
    hold(page, "Control", "Enter")
    expect(page.locator("#result")).to_have_attribute("aria-busy", "false")
    assert len(sent) == 1
    page.get_by_role("button", name="Score", exact=True).focus()
    hold(page, "Enter")
    expect(page.locator("#result")).to_have_attribute("aria-busy", "false")
    assert len(sent) == 2
    page.get_by_label("Problem").fill("")
    hold(page, "Enter", times=2)
    expect(page.get_by_label("Problem")).to_have_value("\n\n\n")


def test_keys_held_down_delete_one_step(page):
    page.goto("/")
    page.get_by_role("textbox", name="Solution").fill("1. One.\n2. Two.\n3. Three.\n4. Four.")
    page.get_by_role("button", name="Correct step 2", exact=True).click()
    hold(page, "m")
    expect(page.locator("ol.preview > li")).to_have_count(3)
    hold(page, "Delete")
    expect(page.locator("ol.preview > li")).to_have_count(2)
    # Both acts are taken back by a key that is held down.
    hold(page, "Control", "z")
    expect(page.locator("ol.preview > li")).to_have_count(4)


def test_play_does_not_go_on_and_off(store, page):
    (played,) = add(store, [trace(3, "played")], "played")
    page.goto(f"/evidence?trace={played.trace_id}")
    listening(page)
    play = page.locator("button.play")
    for key in ("p", "Enter"):
        play.focus()
        hold(page, key, times=5)
        expect(play).to_have_attribute("aria-pressed", "true")
        play.click()
        expect(play).to_have_attribute("aria-pressed", "false")
