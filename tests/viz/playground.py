"""The playground in a browser: playground.py PAGE [FOLDER], with the page that `scripts/web` builds; screenshots go to the folder."""
import contextlib
import json
import os
import pathlib
import sys
import tempfile
import time

import browser
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

html = pathlib.Path(sys.argv[1])
if not html.exists():
    print(f"skipped: there is no {html}; scripts/web builds it, with Emscripten")
    sys.exit(77)
pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
examples = json.loads((pathlib.Path(__file__).parents[2] / "course/playground/examples.json").read_text())


def picture(page, name):
    if pictures:
        page.screenshot(pictures / f"{name}.png")


def wait(what, seconds=60):
    end = time.monotonic() + seconds
    while not (value := what()):
        assert time.monotonic() < end, f"{seconds} seconds have passed"
        time.sleep(0.05)
    return value


@contextlib.contextmanager
def Shown(page):
    """Waits until the page shows the graph of a change made within."""
    count = lambda: int(page.js("return document.documentElement.dataset.shown || 0"))
    before = count()
    yield
    wait(lambda: count() > before)
    assert page.find("#error").text == "", page.find("#error").text


def in_graph(page, script):
    return page.js("const page = document.querySelector('#graphs iframe').contentDocument; " + script)


def gradients(page):
    return page.js("return Object.fromEntries([...document.querySelectorAll('[data-gradient]')].map((s) => [s.dataset.gradient, s.textContent]))")


def write(page, css, text):
    box = page.find(css)
    box.send_keys(Keys.CONTROL, "a")
    box.send_keys(text if text else Keys.DELETE)


def choose(page, css, value):
    Select(page.find(css)).select_by_value(value)


def formulas(page):
    wait(lambda: page.js("return document.documentElement.dataset.shown"), 120)
    for i, example in enumerate(examples["formulas"]):
        if i > 0:
            with Shown(page):
                choose(page, "#examples", str(i))
        picture(page, f"example_{i}")
        assert in_graph(page, "return page.documentElement.dataset.wrong") == "0", example["title"]
        made, right = in_graph(page, "return page.documentElement.dataset.checks").split(" of ")
        assert made == right and int(made) > 10, made
        shown = gradients(page)
        for leaf in example["leaves"]:
            assert (shown[f"{leaf['name']} 0"] == "") == leaf.get("constant", False), shown
        page.find("#check").click()
        wait(lambda: page.find("#verdict").text.startswith(("✓", "✗")))
        assert page.find("#verdict").text.startswith("✓"), page.find("#verdict").text


def edit(page):
    with Shown(page):
        choose(page, "#examples", "0")
    with Shown(page):
        write(page, "[aria-label='w ()']", "1")
    assert gradients(page)["x 0"] == "∂ 0.3271", gradients(page)  # 2 tanh(1.5) (1 - tanh(1.5)²)
    # A step backward and forward, by the keyboard; an edit keeps the step.
    end = int(in_graph(page, "return page.getElementById('slider').value"))
    assert end == 7, end
    frame = page.find("#graphs iframe")
    page.driver.switch_to.frame(frame)
    page.find("#rows").send_keys(Keys.ARROW_LEFT, Keys.ARROW_LEFT)
    assert page.js("return document.getElementById('slider').value") == str(end - 2)
    assert "Step 5 of 7" in page.find("#status").text
    page.driver.switch_to.default_content()
    with Shown(page):
        write(page, "[aria-label='b ()']", "-1")
    assert in_graph(page, "return page.getElementById('slider').value") == "5"
    with Shown(page):
        write(page, "#formula", "sum(softmax(x) * x)")
    for text, sentence in (("sum(softmax(x) * ", "it ends where a value is missing"), ("x @ x", "matmul"), ("(" * 60, "nested more than 32"),
                           ("<img src=x onerror=alert(1)>", "where a value is missing"), ("", "the formula is empty")):
        write(page, "#formula", text)
        wait(lambda: sentence in page.find("#error").text)
    write(page, "#formula", "x * other")
    wait(lambda: "`other` has no value" in page.find("#error").text)
    picture(page, "error")
    with Shown(page):
        page.find("#error button").click()
    assert "other 0" in gradients(page)
    with Shown(page):
        write(page, "[aria-label='other ()']", "inf")
    assert gradients(page)["x 0"] == "∂ inf", gradients(page)
    write(page, "[aria-label='other ()']", "1e")
    wait(lambda: "`1e` is not a number" in page.find("#error").text)
    box = page.find("[data-leaf=x] .shape")
    box.clear()
    box.send_keys("2, 2", Keys.TAB)
    with Shown(page):
        write(page, "[aria-label='other ()']", "2")
    assert len(page.all("[data-leaf=x] td")) == 4 and gradients(page)["x 3"] == "∂ 2"


def mistakes(page):
    with Shown(page):
        choose(page, "#examples", "2")
    with Shown(page):
        choose(page, "#mistakes", "0")
    assert "my_softmax(q @ k.T" in page.find("#formula").get_attribute("value")
    assert "my_softmax" in in_graph(page, "return page.getElementById('wrong').textContent")
    assert "wrong" in page.find("#result").text
    page.find("#check").click()
    wait(lambda: "my_softmax" in page.find("#verdict").text)
    picture(page, "mistake")
    with Shown(page):
        choose(page, "#mistakes", "")
    assert "my_" not in page.find("#formula").get_attribute("value")
    for i in range(1, 6):
        with Shown(page):
            choose(page, "#mistakes", str(i))
        page.find("#check").click()
        wait(lambda: page.find("#verdict").text.startswith(("✗", "✓")))
        assert page.find("#verdict").text.startswith("✗") and "my_" in page.find("#verdict").text, page.find("#verdict").text


def exercises(page):
    page.find("#tab-formula").send_keys(Keys.ARROW_RIGHT)
    assert page.find("#exercises-part").is_displayed()
    right = [{"x": "3 * x * x - 2"}, {"a": "b + cos(a)", "b": "a"},
             {"w": "2 * h * (1 - h * h) * x", "x": "2 * h * (1 - h * h) * w", "b": "2 * h * (1 - h * h)"}, {"x": "g", "bias": "sum(g, 0, 1)"}]
    for i, answers in enumerate(right):
        choose(page, "#exercises", str(i))
        for name, answer in answers.items():
            write(page, f"#answers [name={name}]", answer)
        page.find(f"#answers [name={name}]").send_keys(Keys.ENTER)
        wait(lambda: page.find("#judged").text)
        assert page.find("#judged").text.startswith("✓ right"), page.find("#judged").text
        picture(page, f"exercise_{i}")
        write(page, f"#answers [name={name}]", "7")
        page.find("#answers button").click()
        wait(lambda: not page.find("#judged").text.startswith("✓"))
    page.find("#open").click()
    wait(lambda: page.find("#formula").get_attribute("value") == "x + bias")


def transformer(page):
    page.find("#tab-transformer").click()
    page.js("document.getElementById('text').value = arguments[0]", "a rose")
    page.find("#train").click()
    wait(lambda: "too short" in page.find("#trouble").text)
    verses = "".join(f"{i} roses are roses; the river goes around the stone, and does not know the word.\n" for i in range(9))
    page.js("document.getElementById('text').value = arguments[0]", "<script>alert(1)</script>\0\u202e" + verses)
    write(page, "#steps", "25")
    page.find("#train").click()
    wait(lambda: "step 3 " in page.find("#progress").text, 120)
    page.find("#pause").click()
    wait(lambda: page.find("#pause").text == "Continue")
    stopped = page.find("#progress").text
    time.sleep(1)
    assert page.find("#progress").text == stopped
    assert page.find("#trouble").text == ""
    page.find("#pause").click()
    wait(lambda: "step 25 " in page.find("#progress").text, 300)
    losses = page.js("return losses")
    assert len(losses) == 25 and losses[0][1] > 3 and losses[-1][1] < losses[0][1] - 0.3, losses
    write(page, "#prompt", "the river")
    page.find("#sample").click()
    wait(lambda: page.find("#sampled").text.startswith("the river") and len(page.find("#sampled").text) > 200, 120)
    page.find("#attend").click()
    wait(lambda: len(page.all("#attention td")) == 81)
    picture(page, "transformer")
    # A checkpoint goes out and in again.
    with tempfile.TemporaryDirectory() as folder:
        page.driver.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "allow", "downloadPath": folder})
        page.find("#download").click()
        saved = pathlib.Path(folder, "playground.safetensors")
        wait(saved.exists)
        wait(lambda: saved.stat().st_size > 9_000_000)
        assert b'"step":"25"' in saved.read_bytes()[:20000], saved.read_bytes()[:300]
        page.find("#upload").send_keys(str(saved))
        wait(lambda: "after 25 steps" in page.find("#progress").text, 120)
        for size, sentence in (2**27, "more than any checkpoint"), (100, "checkpoint.safetensors: "):  # they change nothing
            os.truncate(saved, size)
            page.find("#upload").send_keys(str(saved))
            wait(lambda: sentence in page.find("#trouble").text)
            assert "after 25 steps" in page.find("#progress").text
        page.js("document.getElementById('sampled').textContent = ''")
        page.find("#sample").click()
        wait(lambda: page.find("#sampled").text.startswith("the river"), 120)
    write(page, "#prompt", "ξ")
    page.find("#sample").click()
    wait(lambda: "`ξ` does not occur in the text" in page.find("#trouble").text)
    page.js("document.getElementById('attention').scrollIntoView()")
    picture(page, "attention")
    # An engine that breaks says so, and begins anew.
    said = page.driver.execute_async_script("trainer.ask({ do: 'step' }, { put: new Uint8Array(1) }).then((a) => arguments[0](a.error))")
    assert "has stopped, and begins anew" in said, said
    page.find("#train").click()
    wait(lambda: "step 1 " in page.find("#progress").text, 120)
    print(f"{losses[-1][1]:.4f} after 25 steps; {stopped}")


with browser.Page(html) as page:
    wait(lambda: page.js("return document.documentElement.dataset.shown"), 120)
    print(f"{html.stat().st_size / 1e6:.1f} MB, {page.js('return performance.now()') / 1000:.1f} s to the first formula")
    formulas(page)
    edit(page)
    mistakes(page)
    exercises(page)
    transformer(page)
for width, dark in ((1200, True), (500, False), (500, True)):
    with browser.Page(html, width=width, dark=dark) as page:
        wait(lambda: page.js("return document.documentElement.dataset.shown"), 120)
        for i in range(4):
            if i:
                with Shown(page):
                    choose(page, "#examples", str(i))
            picture(page, f"{width}_{'dark' if dark else 'light'}_{i}")
            assert page.js("return document.documentElement.scrollWidth <= innerWidth"), f"example {i} is wider than {width} pixels"
        for tab in ("exercises", "transformer"):
            page.find(f"#tab-{tab}").click()
            picture(page, f"{width}_{'dark' if dark else 'light'}_{tab}")
