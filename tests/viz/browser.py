"""A page in headless Chromium, which is cut off from every network (scripts/setup --pages installs it).

    with browser.Page(path, width=1200) as page:
        page.driver...           # Selenium's, to hover, click and press keys
        page.screenshot("x.png")

Leaving it fails if the page wrote an error to the console, asked for anything beside itself, or contradicts the program.
"""
import pathlib
import re
import tempfile

from selenium import webdriver
from selenium.webdriver.chrome.service import Service


class Page:
    def __init__(self, path, width=1200, height=900, dark=False):
        options = webdriver.ChromeOptions()
        self.profile = tempfile.TemporaryDirectory()
        for flag in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "disable-component-update",
                     "disable-background-networking", "proxy-server=127.0.0.1:9", "host-resolver-rules=MAP * ~NOTFOUND",
                     "force-device-scale-factor=1", f"user-data-dir={self.profile.name}"):
            options.add_argument("--" + flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(service=Service("/usr/bin/chromedriver"), options=options)
        # A window is never as narrow as a telephone; what a page sees can be.
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride",
                                    {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.driver.get("about:blank")
        self.driver.get_log("performance")  # of the browser's own first page
        self.driver.get(pathlib.Path(path).resolve().as_uri())

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        try:
            if kind is None:
                self.judge()
        finally:
            self.driver.quit()
            self.profile.cleanup()

    def judge(self):
        errors = [entry["message"] for entry in self.driver.get_log("browser")]
        assert not errors, errors
        asked = re.findall(r'"url":"((?!file:|data:|blob:)[^"]+)"', "".join(e["message"] for e in self.driver.get_log("performance")
                                                                  if "Network.requestWillBeSent" in e["message"]))
        assert not asked, asked
        right, made = self.checks()
        assert right == made, self.driver.find_element("css selector", "[role=alert]").text
        overflow = self.js("return document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert overflow <= 0, f"the page is {overflow} pixels wider than its window"

    def checks(self):
        """How many numbers of the page are the program's, and how many were compared."""
        said = self.js("return document.documentElement.dataset.checks || '0 of 0'").split(" of ")
        return int(said[0]), int(said[1])

    def js(self, script, *arguments):
        return self.driver.execute_script(script, *arguments)

    def find(self, css):
        return self.driver.find_element("css selector", css)

    def attribute(self, css, name):
        """In one step: an element may be drawn anew between being found and being read."""
        return self.js("return document.querySelector(arguments[0]).getAttribute(arguments[1])", css, name)

    def all(self, css):
        return self.driver.find_elements("css selector", css)

    def screenshot(self, path):
        self.driver.save_screenshot(str(path))
