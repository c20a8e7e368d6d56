#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Opens a page in headless Chromium, as tests/cli/report_browser.sh and docs/report.md do.

browser.py check PAGE...            errors, requests to anywhere, and scrolling sideways at 400 and 1600 pixels
browser.py words PAGE               its text, as shown
browser.py shot PAGE FILE.png WIDTH HEIGHT light|dark [SELECTOR]
"""
import base64, json, os, pathlib, shutil, subprocess, sys, tempfile

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")


class Browser:
    """Chromium over a pair of pipes: messages of the DevTools protocol, each ended by a NUL."""

    def __init__(self, program):
        self.folder = tempfile.mkdtemp(prefix="iobench-browser-")
        to_read, self.to = os.pipe()
        self.back, back_write = os.pipe()
        # The browser wants them as 3 and 4; the shell moves them there.
        command = [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
                   "--remote-debugging-pipe", "--no-first-run", "--disable-background-networking",
                   "--disable-component-update", "--hide-scrollbars", "--user-data-dir=" + self.folder, "about:blank"]
        self.process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{back_write}', "sh"] + command, pass_fds=(to_read, back_write),
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            env={**os.environ, "TMPDIR": self.folder})  # it leaves a folder there
        os.close(to_read)
        os.close(back_write)
        self.rest, self.number, self.events = b"", 0, []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")

    session = None

    def message(self):
        while b"\0" not in self.rest:
            more = os.read(self.back, 1 << 16)
            if not more:
                raise EOFError("the browser ended")
            self.rest += more
        text, self.rest = self.rest.split(b"\0", 1)
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        text = json.dumps(request).encode() + b"\0"
        while text:
            text = text[os.write(self.to, text):]
        while True:
            answer = self.message()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, text):
        answer = self.call("Runtime.evaluate", expression=text, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{text}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def open(self, page, width, height, scheme="light"):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
        self.events = []
        self.call("Page.navigate", url=pathlib.Path(page).resolve().as_uri())
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self.message())
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def faults(self):
        for event in self.events:
            method, what = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                yield "exception: " + json.dumps(what["exceptionDetails"])[:500]
            elif method == "Runtime.consoleAPICalled" and what["type"] in ("error", "warning", "assert"):
                yield "console: " + json.dumps(what["args"])[:500]
            elif method == "Log.entryAdded" and what["entry"]["level"] in ("error", "warning"):
                yield "log: " + what["entry"]["text"][:500]
            elif method == "Page.javascriptDialogOpening":
                yield "a dialog: " + what["message"]
            elif method == "Network.requestWillBeSent" and not what["request"]["url"].startswith(("file:", "data:")):
                yield "request: " + what["request"]["url"][:200]

    def close(self):
        self.process.terminate()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def check(browser, page):
    faults = []
    for width in (400, 1600):
        for scheme in ("light", "dark"):
            browser.open(page, width, 900, scheme)
            faults += [f"{width} px, {scheme}: {fault}" for fault in browser.faults()]
            needed = browser.evaluate("document.documentElement.scrollWidth")
            if needed > width:
                faults.append(f"{width} px: the page is {needed} px wide")
            if not browser.evaluate("document.querySelector('#answer .card, #shuffle figure, #others table') !== null"):
                faults.append(f"{width} px: the page is empty")
            if not browser.evaluate("typeof Dygraph === 'undefined' || [...document.querySelectorAll('figure[data-chart]')]"
                                    ".every((one) => one.querySelectorAll('canvas').length > 0)"):
                faults.append(f"{width} px: a chart was not drawn")
    return faults


def main(arguments):
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if not program:
        print("no Chromium here")
        return 77
    browser = Browser(program)
    try:
        if arguments[0] == "check":
            faults = [f"{page}: {fault}" for page in arguments[1:] for fault in check(browser, page)]
            print(*faults, sep="\n")
            return 1 if faults else 0
        if arguments[0] == "words":
            browser.open(arguments[1], 1600, 900)
            print(browser.evaluate("document.body.innerText"))
            return 0
        page, file, width, height, scheme = arguments[1:6]
        browser.open(page, int(width), int(height), scheme)
        if len(arguments) > 6:
            browser.evaluate(f"document.querySelector({json.dumps(arguments[6])}).scrollIntoView()")
            browser.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        with open(file, "wb") as picture:
            picture.write(base64.b64decode(browser.call("Page.captureScreenshot", format="png")["data"]))
        return 0
    finally:
        browser.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
