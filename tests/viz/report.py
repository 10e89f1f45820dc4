"""The pages of `xgrad report` and `compare`: that they draw what the metrics say, that hovering and keys say it too, and that
names and samples are texts and nothing else.

    report.py PROGRAM WORK [SCREENSHOTS]
"""
import json
import math
import pathlib
import re
import shutil
import subprocess
import sys

from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

import browser

program, work = sys.argv[1], pathlib.Path(sys.argv[2])
shots = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
NAME = "<b>run & 'name'"
HOSTILE = "</script><script>document.title='taken'</script>\"'&<b>"


def make_run(folder, steps, rate, config, lr=1e-3):
    folder.mkdir(parents=True)
    rows = []
    for i in range(steps):
        row = {"step": i, "loss": 1.5 + 2.7 * math.exp(-rate * i) + 0.2 * math.sin(i * i), "lr": lr * min(1, (i + 1) / 100) * (1 - i / steps),
               "grad_norm": 0.5 + 0.3 * math.cos(7 * i), "ms": 80 + 10 * math.sin(i)}
        if i % 250 == 249:
            row["val_loss"] = 1.6 + 2.5 * math.exp(-rate * i)
        rows.append(row)
    rows[1234]["grad_norm"] = 512.25  # beyond the chart, but hovering finds it
    (folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "config.json").write_text(json.dumps(config))
    return rows


def shoot(page, name):
    """The whole page, not only what its window shows."""
    if shots:
        shots.mkdir(parents=True, exist_ok=True)
        size = page.js("const e = document.documentElement; return [e.clientWidth, e.clientHeight, Math.min(e.scrollHeight, 4000)]")
        for height in (size[2], size[1]):
            page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                        {"width": size[0], "height": height, "deviceScaleFactor": 1, "mobile": False})
            if height == size[2]:
                page.screenshot(shots / name)


def caption(page, chart):
    return page.all("figure.chart figcaption")[chart].text


def hover(page, chart, share):
    """Moves the pointer to that share of a plot's width."""
    plot = page.all("figure.chart svg.plot")[chart]
    page.js("arguments[0].closest('figure').scrollIntoView({block: 'center'})", plot)
    left, top, width, height = page.js("""const at = arguments[0].getScreenCTM(), plot = arguments[0];
                                          return [at.e, at.f, plot.dataset.width * at.a, plot.getAttribute('height') * at.d]""", plot)
    actions = ActionChains(page.driver, duration=0)
    actions.w3c_actions.pointer_action.move_to_location(round(left + share * width), round(top + height / 2))
    actions.perform()


def check_said(said, rows, names):
    """What a chart says of a step is what its row holds, to four digits."""
    step = int(re.match(r"step (\d+)", said).group(1))
    for name, key in names.items():
        value = float(re.search(re.escape(name) + r" ([-\d.e+]+)", said).group(1))
        assert abs(value - rows[step][key]) < 1e-3 * abs(rows[step][key]), (said, key, rows[step])
    return step


def look_at_report(path, rows):
    for name, options in {"light": {}, "dark": {"dark": True}, "narrow": {"width": 400}, "narrow-dark": {"width": 400, "dark": True}}.items():
        with browser.Page(path, **options) as page:
            assert page.driver.title == f"Run {path.parent.name}", page.driver.title
            assert page.checks()[1] > 4000, page.checks()  # every point that is drawn
            assert len(page.all("figure.chart")) == 3
            shoot(page, f"report-{name}.png")
            hover(page, 0, 0.5)
            step = check_said(caption(page, 0), rows, {NAME: "loss"})
            assert abs(step - len(rows) / 2) < len(rows) * 0.02, step
            assert page.all("figure.chart .cursor")
            if name == "light":
                shoot(page, "report-hover.png")
            hover(page, 2, 1234 / (len(rows) - 1))
            check_said(caption(page, 2), rows, {NAME: "grad_norm"})
            # Keys: from the end, backwards, to the beginning; Escape takes it away.
            figure = page.all("figure.chart")[1]
            page.js("arguments[0].focus()", figure)
            figure.send_keys(Keys.END)
            assert check_said(caption(page, 1), rows, {NAME: "lr"}) == len(rows) - 1
            figure.send_keys(Keys.ARROW_LEFT)
            assert check_said(caption(page, 1), rows, {NAME: "lr"}) < len(rows) - 1
            figure.send_keys(Keys.HOME)
            assert check_said(caption(page, 1), rows, {NAME: "lr"}) == 0
            figure.send_keys(Keys.ESCAPE)
            assert "step" not in caption(page, 1), caption(page, 1)
            # Evaluations are found by their steps.
            hover(page, 0, 1249 / (len(rows) - 1))
            assert "validation" in caption(page, 0), caption(page, 0)
            # Samples are texts.
            last = page.find("details[open] pre")
            assert HOSTILE in page.js("return arguments[0].textContent", last)
            page.all("summary")[0].click()
            assert len(page.all("details[open]")) == 2
            # Lines are seen on their paper.
            paper = page.js("return getComputedStyle(document.querySelector('.picture .paper')).fill")
            body = page.js("return getComputedStyle(document.body).backgroundColor")
            assert paper == body, (paper, body)
            drawn = page.js("""return [...document.querySelectorAll('[data-line]')].map((line) => getComputedStyle(line).stroke)
                               .concat(getComputedStyle(document.querySelector('.picture text')).fill)""")
            assert all(contrast(color, paper) >= 3 for color in drawn), (drawn, paper)
            assert page.js("return parseFloat(getComputedStyle(document.querySelector('svg.picture')).fontSize)"
                           " * document.querySelector('svg.picture').getScreenCTM().a") > 9.5


def contrast(a, b):
    def luminance(color):
        parts = [int(x) / 255 for x in re.findall(r"\d+", color)[:3]]
        r, g, b = (x / 12.92 if x <= 0.04045 else ((x + 0.055) / 1.055) ** 2.4 for x in parts)
        return 0.2126 * r + 0.7152 * g + 0.0722 * b

    low, high = sorted((luminance(a), luminance(b)))
    return (high + 0.05) / (low + 0.05)


def look_at_comparison(path, rows):
    for name, options in {"light": {}, "dark": {"dark": True}, "narrow": {"width": 400}}.items():
        with browser.Page(path, **options) as page:
            heads = [cell.text for cell in page.all("th[scope=col]")]
            assert len(set(heads)) == 3 and heads[1] == "one/run" and heads[2] == "two/run", heads
            assert page.driver.title == "3 runs compared"
            shoot(page, f"compare-{name}.png")
            hover(page, 0, 0.5)
            for head in heads:
                assert head in caption(page, 0), caption(page, 0)
            hover(page, 1, 0.25)
            check_said(caption(page, 1), rows, {heads[0]: "lr"})


def look_at_decades(path):
    """Rates that differ by decades are both seen, on a logarithmic axis; other charts are as before."""
    with browser.Page(path) as page:
        assert page.checks()[1] > 4000, page.checks()
        assert [plot.get_attribute("data-log") for plot in page.all("figure.chart svg.plot")] == [None, "y", None]
        shoot(page, "compare-decades.png")
        hover(page, 1, 0.25)
        said = caption(page, 1)
        rates = [float(rate) for rate in re.findall(r"run ([\d.e-]+)", said)]
        places = page.js("return [...document.querySelectorAll('circle.point')].map((point) => Number(point.getAttribute('cy')))")
        height = page.js("return Number(document.querySelectorAll('svg.plot')[1].getAttribute('height'))")
        decades = abs(math.log10(rates[0] / rates[1]))
        assert len(rates) == 2 and decades > 2.9, said
        assert abs(places[0] - places[1]) > 0.4 * height and 0 < min(places) and max(places) < height, places


def without_script(path):
    """All is there without scripts, too."""
    text = re.sub(r"<script\b.*?</script>", "", path.read_text(), flags=re.S)
    plain = path.with_name("plain.html")
    plain.write_text(text)
    with browser.Page(plain) as page:
        assert page.checks() == (0, 0)
        assert len(page.all("svg.plot [data-line]")) >= 4  # losses, those of validation, rate, norm
        box = page.js("const b = document.querySelector('[data-line]').getBoundingClientRect(); return [b.width, b.height]")
        assert box[0] > 300 and box[1] > 50, box
        assert page.find("details[open] pre").is_displayed()


def main():
    shutil.rmtree(work, ignore_errors=True)
    recipe = {"preset": "nano", "vocab_size": 65, "batch_size": 12, "block_size": 64, "n_layer": 4, "max_iters": 3000, "learning_rate": 1e-3, "data": HOSTILE}
    hostile_name = work / NAME
    rows = make_run(hostile_name, 3000, 0.002, recipe)
    make_run(work / "one/run", 3000, 0.001, {**recipe, "learning_rate": 2e-3})
    make_run(work / "two/run", 2000, 0.004, {**recipe, "n_layer": 6})
    (hostile_name / "environment.json").write_text(json.dumps({"compiler": "GCC", "threads": 2}))
    (hostile_name / "samples.jsonl").write_text("".join(
        json.dumps({"step": 250 * i, "text": f"sample {i} of the model\n{HOSTILE}\nword " + "and so on, " * 20}) + "\n" for i in range(12)))
    said = subprocess.run([program, "report", hostile_name], capture_output=True, text=True, check=True).stdout
    report = hostile_name / "report.html"
    assert said == f"{report}\n", said
    assert report.stat().st_size < 600_000, report.stat().st_size
    subprocess.run([program, "compare", hostile_name, work / "one/run", work / "two/run", "--out", work / "compare.html"],
                   capture_output=True, check=True)
    make_run(work / "small/run", 2000, 0.001, recipe, lr=1e-6)
    subprocess.run([program, "compare", work / "one/run", work / "small/run", "--out", work / "decades.html"], capture_output=True, check=True)
    look_at_report(report, rows)
    look_at_decades(work / "decades.html")
    look_at_comparison(work / "compare.html", rows)
    without_script(report)
    print("pages: report", report.stat().st_size, "bytes, comparison", (work / "compare.html").stat().st_size, "bytes")


main()
