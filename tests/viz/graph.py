"""The graph page in a browser: graph.py PROGRAM, which writes the pages (xgrad_kit_tests "[.graph-pages]").

With a folder as second argument, screenshots go there.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import browser
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.common.keys import Keys

pictures = pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None


def picture(page, name):
    if pictures:
        page.screenshot(pictures / f"{name}.png")


def press(page, *keys):
    for key in keys:
        page.find("body").send_keys(key)


def click(page, css):
    """Rows are drawn anew when the window's size settles."""
    for _ in range(10):
        try:
            return page.find(css).click()
        except StaleElementReferenceException:
            time.sleep(0.1)
    raise AssertionError(f"{css} does not stay")


def step(page):
    return int(page.js("return Number(document.getElementById('slider').value)"))


def heading(page):
    return page.find("#detail h2").text


def small(folder):
    with browser.Page(folder / "small.html") as page:
        assert page.checks()[1] > 40, page.checks()
        assert "gradients agree" in page.find("#summary").text and "of" in page.find("#summary").text
        assert "Before the backward pass" in page.find("#status").text
        assert heading(page).startswith("sum"), heading(page)
        order = page.js("return data.order")
        press(page, Keys.ARROW_RIGHT)
        assert step(page) == 1 and "sum" in page.find("#status").text
        press(page, Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
        assert step(page) == 3 and page.attribute(".row.chosen", "data-node") == str(order[2])
        press(page, Keys.ARROW_LEFT)
        assert step(page) == 2
        press(page, Keys.END)
        assert step(page) == len(order)
        assert page.attribute(".row.chosen", "data-node") == str(order[-1])
        assert len(page.all(".row.waiting")) == 0
        press(page, Keys.ARROW_RIGHT)
        assert step(page) == len(order), "beyond the end"
        press(page, Keys.HOME)
        assert step(page) == 0 and len(page.all(".row.done")) == 0
        # y is used by mul, twice, and by tanh: one line each, and their sum.
        y = page.js("return nodes.findIndex((n) => n.op === 'add')")
        click(page, f"[data-node='{y}']")
        assert heading(page) == f"add {y + 1}", heading(page)
        assert len(page.all("#detail .part")) == 2
        assert page.find("#sum").text.startswith("Sum of 2:")
        text = page.find("#detail").text
        assert "a and b" in text and "g * b + g * a" in text.replace("  ", " "), text
        assert "✓" in text
        # Jump to an input and to a consumer.
        page.all("#detail .part .jump")[0].click()
        assert heading(page).split()[0] in ("mul", "tanh", "add"), heading(page)
        page.all("#detail ul .jump")[0].click()
        assert heading(page) == f"add {y + 1}", heading(page)
        # Search: "/" goes there, Enter to the next match, Escape back.
        press(page, "/")
        box = page.driver.switch_to.active_element
        assert box.get_attribute("id") == "search"
        box.send_keys("leaf")
        assert page.find("#found").text == "3 found"
        seen = []
        for _ in range(4):
            box.send_keys(Keys.ENTER)
            seen.append(heading(page))
        assert len(set(seen)) == 3 and seen[0] == seen[3], seen
        assert {name.split()[-1] for name in seen} == {"w", "b", "x"}, seen
        box.send_keys(Keys.ARROW_LEFT)
        assert step(page) == 0, "arrows in the search field do not step"
        box.send_keys("nothing like it")
        assert page.find("#found").text == "nothing found"
        box.send_keys(Keys.ESCAPE)
        assert page.driver.switch_to.active_element.get_attribute("id") == "rows"
        press(page, Keys.ARROW_RIGHT)
        assert step(page) == 1
        page.find("#next").click()
        page.find("#last").click()
        assert step(page) == len(order)
        picture(page, "small")


def wrong(folder):
    with browser.Page(folder / "wrong.html") as page:
        assert page.js("return document.documentElement.dataset.wrong") == "3"
        said = page.find("#wrong").text
        assert said.startswith("The backward is wrong of wrong_square") and "these gradients are wrong: leaf 1 w leaf 2 x mul 3" in said, said
        page.find("#wrong .jump").click()
        assert heading(page).startswith("wrong_square")
        assert len(page.all(".row .bad")) == 1, "the op"
        assert "gets 6 ✗ 12 by differences" in page.find("#detail").text, page.find("#detail").text
        press(page, Keys.END)
        assert len(page.all(".row .gradient .bad")) == 3, "and what it spoils"
        node = page.js("return nodes.findIndex((n) => n.op === 'mul')")
        click(page, f"[data-node='{node}']")
        text = page.find("#detail").text
        assert "the backward of wrong_square(a ()) → ()" in text and "✗ 12 by differences, but 6 by the backward" in text, text
        picture(page, "wrong")


def layers(folder):
    for width, dark in ((1200, False), (1200, True), (400, False)):
        with browser.Page(folder / "layers.html", width=width, dark=dark) as page:
            everything = page.js("return rows.rows.length")
            page.js("rows.scroll_to(0)")
            click(page, ".row.layer")
            closed = page.js("return rows.rows.length")
            assert closed < everything
            assert page.attribute(".row.layer", "aria-expanded") == "false"
            click(page, ".row.layer")
            assert page.js("return rows.rows.length") == everything
            page.find("#close").click()
            assert page.js("return rows.rows.length") < 12
            press(page, *[Keys.ARROW_RIGHT] * 20)  # within a closed layer
            assert step(page) == 20 and len(page.all(".row.layer.now")) == 1
            picture(page, f"closed_{width}_{'dark' if dark else 'light'}")
            chosen = page.js("return chosen")
            closed = page.js("return rows.rows.length")
            page.find("#rows").send_keys(Keys.ENTER)
            assert page.js("return rows.rows.length") > closed, "Enter opens the layer of the chosen node"
            page.find("#open").click()
            assert page.js("return rows.rows.length") == everything
            assert page.attribute(".row.chosen", "data-node") == str(chosen)
            before = page.js("return chosen")
            press(page, Keys.ARROW_DOWN)
            assert page.js("return chosen") == before + 1
            press(page, Keys.ARROW_UP)
            assert page.js("return chosen") == before
            picture(page, f"layers_{width}_{'dark' if dark else 'light'}")


def hostile(folder):
    with browser.Page(folder / "hostile.html") as page:
        assert "nan" in page.find("#summary").text
        press(page, "/")
        page.find("#search").send_keys("<b>")
        page.find("#search").send_keys(Keys.ENTER)
        assert "</script><b>" in heading(page), heading(page)
        assert len(page.all("#detail b")) == 0
        log = page.js("return nodes.findIndex((n) => n.op === 'log')")
        page.js("choose(arguments[0])", log)
        assert "-inf" in page.find("#detail").text
        picture(page, "hostile")


def long_names(folder):
    for width in (1200, 1000, 700):
        with browser.Page(folder / "long_names.html", width=width) as page:
            op = page.js("return nodes.findIndex((n) => n.op === 'scaled_dot_product_attention')")
            page.js("choose(arguments[0])", op)
            cell = page.find(f"[data-node='{op}'] > span")
            assert cell.text == f"scaled_dot_product_attention {op + 1}" and op > 100, cell.text
            assert page.js("return arguments[0].scrollWidth <= arguments[0].clientWidth", cell), f"cut at a width of {width}"
            picture(page, f"long_names_{width}")


def large(folder):
    begin = time.monotonic()
    with browser.Page(folder / "large.html") as page:
        page.find(".row")
        loaded = time.monotonic() - begin
        script = page.js("const t = performance.getEntriesByType('navigation')[0]; return t.domContentLoadedEventEnd - t.startTime")
        n = page.js("return nodes.length")
        assert n == 10_000 or n == 10_001, n
        assert len(page.all(".row")) < 60, "only what is in sight is in the document"
        cost = page.js("""let worst = 0, sum = 0;
            for (let k = 0; k < 200; ++k) { const t = performance.now(); go(k * 49 + 1); document.body.offsetHeight; const d = performance.now() - t; worst = Math.max(worst, d); sum += d; }
            return [sum / 200, worst]""")
        fold = page.js("const t = performance.now(); rows.fold_all(false); rows.fold_all(true); return performance.now() - t")
        press(page, Keys.END)
        assert len(page.all(".row.chosen")) == 1
        assert len(page.all("#detail .part")) == 12, "w has 10,000 contributions"
        page.find("#parts > button").click()
        assert len(page.all("#detail .part")) == 62
        press(page, "/")
        page.find("#search").send_keys("sin")
        page.find("#search").send_keys(Keys.ENTER)
        assert heading(page).startswith("sin")
        checks = page.checks()
        picture(page, "large")
    size = (folder / "large.html").stat().st_size
    print(f"{n} nodes: {size / 1e6:.1f} MB, script done after {script:.0f} ms ({loaded:.1f} s with the browser's start), "
          f"a step {cost[0]:.1f} ms (at most {cost[1]:.1f}), closing and opening all layers {fold:.0f} ms, checks {checks[0]} of {checks[1]}")


def limits(folder):
    with browser.Page(folder / "limits.html") as page:
        right, made = page.checks()
        assert right == made and made > 30, page.checks()
        said = page.find("#wrong").text
        assert "The backward is wrong of forgetful_product" in said and "leaf" in said, said
        page.find("#wrong .jump").click()
        assert heading(page).startswith("forgetful_product")
        text = page.find("#detail").text
        assert "gets nothing ✗" in text and "but [0, 0, 0] by the backward" in text, text
        picture(page, "forgets")
        v = page.js("return nodes.findIndex((n) => n.name === 'v')")
        page.js("choose(arguments[0])", v)
        text = page.find("#detail").text
        assert "None, though the result depends on it" in text and "✗" in text, text
        triple = page.js("return nodes[arguments[0]].missing.length ? arguments[0] : nodes.findIndex((n) => n.missing.length > 0)", v)
        page.js("choose(arguments[0])", triple)
        text = page.find("#detail").text
        assert "a backward forgets it" in text and "its backward adds nothing" in text, text
        picture(page, "forgotten")
        press(page, Keys.END)
        assert len(page.all(".row .gradient .bad")) == 2, "v and its triple have none"
        w = page.js("return nodes.findIndex((n) => n.name === 'w')")
        page.js("choose(arguments[0])", w)
        assert "a hook on mul" in page.find("#detail").text and "changed the gradient on its way" in page.find("#detail").text
        x = page.js("return nodes.findIndex((n) => n.name === 'x')")
        page.js("choose(arguments[0])", x)
        assert "left as it is" in page.find("#detail").text, page.find("#detail").text
        picture(page, "limits")


def main():
    with tempfile.TemporaryDirectory() as name:
        environment = dict(os.environ, XGRAD_PAGES=name)
        subprocess.run([sys.argv[1], "[.graph-pages]"], env=environment, check=True, stdout=subprocess.DEVNULL)
        for test in (small, wrong, layers, hostile, large, limits, long_names):
            test(pathlib.Path(name))
            print(f"{test.__name__}: ok", flush=True)


main()
