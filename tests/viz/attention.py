"""The attention page in a browser: hover, click, lock, keys, toggles, sliders; xgrad and xgrad_kit_tests are the arguments.

With a third argument, pictures of the page go to that folder.
"""
import math
import os
import pathlib
import subprocess
import sys
import tempfile

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import browser

HOSTILE = "</script><!-- \"'&\\ 🐈\u200d⬛ e\u0301 שלום \u202eabc\u202c\tend\n"
program, tests = (str(pathlib.Path(path).resolve()) for path in sys.argv[1:3])
pictures = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None


def make_pages(folder):
    (folder / "text").write_text(HOSTILE * 60)
    subprocess.run([program, "train", "--data", "text", "--block-size", "24", "--batch-size", "4", "--n-layer", "2", "--n-head", "3", "--n-embd", "12",
                    "--max-iters", "30", "--warmup-iters", "2", "--lr-decay-iters", "30", "--learning-rate", "0.05", "--eval-interval", "10", "--eval-iters", "1",
                    "--out", "run"], cwd=folder, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)
    subprocess.run([program, "explain", "--checkpoint", "run", "--data", "text", "--length", "24", "--out", "run.html"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([program, "explain", "--checkpoint", "run", "--prompt", HOSTILE[:9], "--out", "prompt.html"], cwd=folder, check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    subprocess.run([tests, "[.attention-page]"], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def hover(page, element, i, j, rows, columns, click=False):
    """Moves the pointer to the cell of query i and key j."""
    page.js("arguments[0].scrollIntoView({block: 'center'})", element)
    size = element.rect
    x, y = ((j + 0.5) / columns - 0.5) * size["width"], ((i + 0.5) / rows - 0.5) * size["height"]
    action = ActionChains(page.driver).move_to_element_with_offset(element, round(x), round(y))
    (action.click() if click else action).perform()


def press(page, *keys):
    ActionChains(page.driver).send_keys(*keys).perform()


def slide(page, name, value):
    """By keys, as a user without a mouse does."""
    element = page.find(f"input[name={name}]")
    page.js("arguments[0].scrollIntoView({block: 'center'}); arguments[0].focus()", element)
    element.send_keys(Keys.HOME)
    for _ in range(200):
        if float(element.get_property("value")) >= value - 1e-9:
            break
        element.send_keys(Keys.ARROW_RIGHT)
    assert abs(float(element.get_property("value")) - value) < 1e-6, (name, element.get_property("value"))


def seen(page):
    return page.js("return [view.row, view.column, view.layer, view.head, view.locked]")


def weight(page, layer, head, i, j, name="A"):
    return page.js("const [l, h, i, j, name] = arguments, layer = run.layers[l]; return layer.heads[h].maps[name][i * layer.S + j]",
                   layer, head, i, j, name)


def check_opening(page):
    """It opens at the weight that counts most in the loss."""
    found = page.js("""let most = [0, 0];
        run.layers.forEach((layer, l) => layer.heads.forEach((head, h) => head.maps.AG.forEach((x, n) => {
          const here = Math.floor(n / layer.S) === view.row && n % layer.S === view.column && l === view.layer && h === view.head;
          if (Math.abs(x) > most[0]) most[0] = Math.abs(x);
          if (here) most[1] = Math.abs(x); })));
        return most""")
    assert found[0] > 0 and abs(found[1] / found[0] - 1) < 1e-6 and not seen(page)[4], (found, seen(page))
    assert page.find("[aria-pressed=true].head").get_attribute("tabindex") == "0" and len(page.all(".head[tabindex='0']")) == 1


def check_run(page):
    check_opening(page)
    right, made = page.checks()
    # 6 heads, 3 numbers a query; 24 distributions, one of them in full
    assert right == made == 6 * 3 * 24 + 24, (right, made)
    assert "after 30 steps" in page.find(".controls").text
    assert len(page.all(".head")) == 6
    tokens = page.js("return data.tokens")
    assert "".join(tokens) == HOSTILE[:24], tokens
    shown = [t.get_property("textContent") for t in page.all(".strip .token")]
    assert len(shown) == 24 and "◌\u0301" in page.js("return Array.from(HOSTILE_TEXT, visible)".replace("HOSTILE_TEXT", "arguments[0]"), HOSTILE)
    assert page.js("return visible(' a b\\n\\n')") == "␣a␣b⏎⏎"  # a token of several characters
    assert page.js("return visible('\\u202e')") == "U+202E" and page.js("return visible('\\n')") == "⏎"

    # Glyphs that are turned reach below their box: the labels above the map stand clear of it.
    below = page.js("""const ends = [...document.querySelectorAll('.labels.columns .token')].map((token) => {
        const text = document.createRange(); text.selectNodeContents(token); return text.getBoundingClientRect().bottom; });
        return [ends.length, Math.max(...ends) - document.querySelector('.map').getBoundingClientRect().top]""")
    assert below[0] == 24 and below[1] < -1, below

    # Hover on a small map, then on the large one.
    small = page.all(".head canvas")[4]
    hover(page, small, 20, 10, 24, 24)
    tip = page.find(".tip").text
    assert "h.1.attn, head 1" in tip and page.js("return number(arguments[0])", weight(page, 1, 1, 20, 10)) in tip, tip
    page.all(".head")[1].click()
    assert seen(page)[2:4] == [0, 1]
    assert page.all(".head")[1].get_attribute("aria-pressed") == "true"
    large = page.find(".map")
    hover(page, large, 17, 5, 24, 24)
    assert seen(page)[:2] == [17, 5]
    assert page.js("return number(arguments[0])", weight(page, 0, 1, 17, 5)) in page.find(".readout").text
    hover(page, large, 5, 17, 24, 24)
    assert "masked" in page.find(".tip").text and "comes after it" in page.find(".why").text

    # A click locks; hovering elsewhere then changes the tip alone.
    hover(page, large, 20, 3, 24, 24, click=True)
    hover(page, large, 9, 9, 24, 24)
    assert seen(page) == [20, 3, 0, 1, True], seen(page)
    assert "(9)" in page.find(".tip").text and "(20)" in page.find(".readout").text
    hover(page, large, 20, 3, 24, 24, click=True)  # once more lets go
    assert not seen(page)[4]

    # Keys on the large map.
    page.js("arguments[0].focus()", large)
    press(page, Keys.ARROW_UP, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert seen(page)[:2] == [19, 5] and seen(page)[4]
    press(page, *[Keys.ARROW_LEFT] * 9)
    assert seen(page)[:2] == [19, 0]
    press(page, Keys.ESCAPE)
    assert not seen(page)[4]
    press(page, Keys.ENTER)
    assert seen(page)[4]
    # Keys on the small maps.
    page.all(".head")[1].send_keys(Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ENTER)
    assert seen(page)[2:4] == [1, 2], seen(page)

    # The terms of a weight give that weight.
    value = lambda name: float(page.find(f"#{name}").text)
    products = [[float(cell.text) for cell in row.find_elements("css selector", "td")[1:4]] for row in page.all(".products tbody tr")]
    assert len(products) == 4
    assert all(abs(q * k - p) <= 2e-3 * (abs(p) + 1) for q, k, p in products)
    assert abs(sum(p for _, _, p in products) - value("dot")) < 5e-3 * (1 + abs(value("dot")))
    assert abs(value("dot") / 2 - value("scaled")) < 1e-3 * (1 + abs(value("scaled")))
    assert abs(value("weight") - value("program")) < 1e-3 and abs(value("program") - weight(page, 1, 2, 19, 0)) < 1e-3

    # The toggles, and their colours.
    pixels = lambda: page.js("""const to = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
        to.drawImage(document.querySelector('.map canvas'), 0, 0);
        return Array.from(to.getImageData(0, 19, 20, 1).data)""")
    before = pixels()
    for mode, name in (("G", "gradient of the loss"), ("AG", "weight times gradient")):
        page.find(f"[data-mode={mode}]").click()
        assert page.find(f"[data-mode={mode}]").get_attribute("aria-pressed") == "true"
        assert page.find("[data-mode=A]").get_attribute("aria-pressed") == "false"
        assert name in page.find("section h2:not(:empty) + .legend").find_element("xpath", "preceding-sibling::h2").text
        now = pixels()
        assert now != before
        signs = [weight(page, 1, 2, 19, j, mode) for j in range(20)]
        most = max(range(20), key=lambda j: abs(signs[j]))
        red, _, blue = now[4 * most:4 * most + 3]
        assert (red > blue) == (signs[most] > 0), (signs[most], red, blue)
        before = now
    page.find(".shared").click()
    assert page.js("return view.shared")
    page.find("[data-mode=A]").click()

    # The loss without a head, and labels.
    run = page.js("return run.layers.map((l) => l.heads.map((h) => [h.without, h.label]))")
    loss = page.js("return run.loss")
    flat = [head for layer in run for head in layer]
    for (without, label), cell in zip(flat, page.all(".head")):
        said = cell.get_attribute("aria-label")
        assert ("no clear pattern" in said) == (label is None) and (label or "") in said
        assert ("+" if without >= loss else "−") in said

    check_distribution(page)
    # A click on the text selects that query.
    page.all(".strip .token")[7].click()
    assert seen(page)[0] == 7 and "(7)" in page.find(".next h2").text


def check_distribution(page):
    """Against the same in Python."""
    logits = page.js("const V = run.classes; return Array.from(run.logits.subarray(view.row * V, (view.row + 1) * V))")
    for name, value in (("temperature", 0.5), ("topK", 8), ("topP", 0.85), ("minP", 0.1)):
        slide(page, name, value)
    largest = max(logits)
    p = [math.exp((x - largest) / 0.5) for x in logits]
    order = sorted(range(len(p)), key=lambda c: -logits[c])
    p = {c: p[c] for c in order[:8]}
    kept, before, total = {}, 0, sum(p.values())
    for c in order[:8]:
        if before >= 0.85 * total:
            break
        kept[c] = p[c]
        before += p[c]
    kept = {c: x for c, x in kept.items() if x >= 0.1 * max(kept.values())}
    total = sum(kept.values())
    shown = {int(bar.get_attribute("data-class")): bar.find_element("css selector", ".number").text for bar in page.all(".choice")}
    for c, text in shown.items():
        assert text == "cut" if c not in kept else abs(float(text.split()[0]) - 100 * kept[c] / total) < 0.06, (c, text)
    assert f"{len(kept)} of {len(logits)} are left" in page.find(".bars").text
    slide(page, "temperature", 0)
    assert page.find(".choice .number").text == "100 %"
    assert page.find(f".choice[data-class='{order[0]}'] .number").text == "100 %"


def check_own(page):
    right, made = page.checks()
    # two layers of two heads; in the first, one of five queries is masked completely
    assert right == made == 2 * 3 * 4 + 2 * 3 * 5, (right, made)
    assert "<script>throw" in page.find("p.soft").text
    assert [e.text for e in page.all(".layer h3 .soft")] == ["attention", "squares"]
    assert "</script>" in [t.text for t in page.all(".strip .token")]
    page.all(".head")[0].click()
    large = page.find(".map")
    hover(page, large, 2, 3, 5, 7)
    assert "Masked" in page.find(".why").text
    hover(page, large, 1, 0, 5, 7)
    assert "+ bias" in page.find(".why").text and abs(float(page.find("#weight").text) - weight(page, 0, 0, 1, 0)) < 1e-3
    page.all(".head")[3].click()
    hover(page, large, 1, 0, 5, 7)
    assert "it is not q · k" in page.find(".why").text and abs(float(page.find("#weight").text) - weight(page, 1, 1, 1, 0)) < 1e-3
    assert not page.find(".next").is_displayed()


def check_across(page):
    """As many keys as queries, with labels of their own; the loss without the first head is not finite."""
    check_opening(page)
    assert [e.get_property("textContent") for e in page.all(".labels.columns .token")] == list("vwxyz")
    assert [e.get_property("textContent") for e in page.all(".labels.rows .token")] == list("abcde")
    large = page.find(".map")
    hover(page, large, 1, 2, 5, 5)
    assert page.find(".readout").text.startswith("b (1) looks at x (2)"), page.find(".readout").text
    assert page.js("return run.layers[0].heads.map((h) => h.without)")[0] is None


def check_named(page):
    """The first layer's weights are named and have no scores, and some are negative."""
    right, made = page.checks()
    assert right == made == 2 * 3 * 5, (right, made)  # of the softmax alone
    page.all(".head")[0].click()
    large = page.find(".map")
    i, j = page.js("const A = run.layers[0].heads[0].maps.A, n = A.findIndex((a) => a < -0.01); return [Math.floor(n / 5), n % 5]")
    hover(page, large, i, j, 5, 5)
    text = page.find(".why").text
    assert "The layer named these weights" in text and "softmax of scores" in text and "q · k" not in text, text
    assert abs(float(page.find("#program").text) - weight(page, 0, 0, i, j)) < 1e-3 and weight(page, 0, 0, i, j) < 0
    red, _, blue = page.js("return colour(arguments[0], 1)", weight(page, 0, 0, i, j))
    assert blue > red, "a negative weight is not coloured as one"
    assert "blue: subtracts it" in page.find(".legend").text
    hover(page, large, 1, 3, 5, 5)
    assert "masked" in page.find(".tip").text and page.find("#program").text == "0"
    page.all(".head")[2].click()
    hover(page, large, 2, 1, 5, 5)
    assert "From score to weight" in page.find(".why").text


def check_strip(page):
    """Nothing stands between the letters of the text."""
    gaps = page.js("""const boxes = [...document.querySelectorAll('.strip .token')].map((token) => token.getBoundingClientRect());
        const letters = [...document.querySelectorAll('.strip .token')].map((token) => { const text = document.createRange(); text.selectNodeContents(token); return text.getBoundingClientRect(); });
        return letters.slice(1).map((letter, n) => (boxes[n].top === boxes[n + 1].top ? letter.left - letters[n].right : 0))""")
    assert max(gaps) < 0.5, gaps


def picture(page, name):
    if pictures:
        height = page.js("return document.documentElement.scrollHeight")
        width = page.js("return innerWidth")
        page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        page.screenshot(pictures / f"attention_{name}.png")


with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    make_pages(folder)
    for name, width, dark in (("light", 1200, False), ("dark", 1200, True), ("narrow", 400, False)):
        with browser.Page(folder / "run.html", width=width, dark=dark) as page:
            if name == "dark":
                red, green, blue = page.js("return colour(0, 1)")
                assert red + green + blue < 200, "dark where there is no weight"
                picture(page, name)
                continue
            check_strip(page)
            check_run(page)
            page.find("[data-mode=G]").click()
            picture(page, name)
    with browser.Page(folder / "prompt.html") as page:  # the next character is unknown, so there is no gradient
        check_opening(page)
        assert seen(page)[0] < len(page.js("return data.tokens")) - 1, seen(page)
    with browser.Page(folder / "own.html", width=1000) as page:
        check_opening(page)
        check_own(page)
        picture(page, "own")
    with browser.Page(folder / "across.html", width=1000) as page:
        check_across(page)
    with browser.Page(folder / "named.html", width=1000) as page:
        check_named(page)
        picture(page, "named")
    # A page that contradicts the program says so.
    text = (folder / "run.html").read_text()
    wrong = folder / "wrong.html"
    wrong.write_text(text.replace('"scale":0.5', '"scale":0.6', 1))
    try:
        with browser.Page(wrong):
            pass
    except AssertionError as error:
        assert "softmax" in str(error), error
    else:
        raise AssertionError("a wrong scale was not noticed")
    os.remove(wrong)
print("all is well")
