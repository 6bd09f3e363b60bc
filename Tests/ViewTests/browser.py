"""A headless Chromium, spoken to over its debugging pipe (descriptors 3 and 4, JSON, a NUL after each message)."""
import atexit
import base64
import functools
import json
import os
import shutil
import signal
import subprocess
import tempfile
import unittest

LIMIT = 300  # seconds, of a test or of a program that it runs


class Browser:
    def __init__(self):
        program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
        if not program:
            raise FileNotFoundError("chromium is missing: scripts/setup installs it")
        self.scratch = tempfile.mkdtemp(prefix="tracer-browser-")
        to_browser, to_us = os.pipe(), os.pipe()

        def descriptors():
            os.dup2(to_browser[0], 3)
            os.dup2(to_us[1], 4)

        # pipe() may have returned 3 or 4: move its descriptors out of the way first.
        pipes = [os.dup(fd) for fd in (*to_browser, *to_us)]
        while min(pipes) <= 4:
            pipes = [os.dup(fd) for fd in pipes]
        to_browser, to_us = pipes[:2], pipes[2:]
        self.process = subprocess.Popen(
            [program, "--headless=new", "--no-sandbox", "--disable-gpu", "--remote-debugging-pipe", "--no-first-run", "--hide-scrollbars",
             "--disable-background-networking", f"--user-data-dir={self.scratch}", "about:blank"],
            preexec_fn=descriptors, pass_fds=(3, 4), close_fds=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.out = os.fdopen(to_browser[1], "wb", buffering=0)
        self.into, self.received = to_us[0], bytearray()
        os.close(to_browser[0])
        os.close(to_us[1])
        self.number, self.session, self.complaints, self.server = 0, None, [], None
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(domain + ".enable")
        self.appear()

    def appear(self, width=1280, height=760, dark=False):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def message(self):
        while (end := self.received.find(0)) < 0:
            part = os.read(self.into, 1 << 20)
            if not part:
                raise EOFError("the browser has gone")
            self.received += part
        text = self.received[:end]
        del self.received[:end + 1]
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        request = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            request["sessionId"] = self.session
        self.out.write(json.dumps(request).encode() + b"\0")
        while True:
            answer = self.message()
            self.listen(answer)
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise RuntimeError(f"{method}: {answer['error']}")
                return answer["result"]

    def listen(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Runtime.exceptionThrown":
            self.complaints.append(parameters["exceptionDetails"].get("exception", {}).get("description") or parameters["exceptionDetails"]["text"])
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.complaints.append(str(parameters["args"]))
        elif event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] == "error":
            self.complaints.append(parameters["entry"]["text"])
        elif event.get("method") == "Network.requestWillBeSent":
            address = parameters["request"]["url"]
            if not address.startswith(("file:", "about:", "data:", "blob:")) and not (self.server and address.startswith(self.server)):
                self.complaints.append("network: " + address)

    def open(self, page, hash=""):
        """A page is a path or an address."""
        self.call("Page.navigate", url="about:blank")
        self.call("Page.navigate", url=(page if "://" in page else f"file://{os.path.abspath(page)}") + hash)
        self.until("document.documentElement?.dataset.ready === 'yes'")

    def evaluate(self, expression):
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            raise RuntimeError(f"{expression}: {answer['exceptionDetails']}")
        return answer["result"].get("value")

    def perform(self, expression):
        self.evaluate(expression)
        self.settle()

    def until(self, expression):
        """Returns when it is true. The test's own time limit ends what never is."""
        while not self.evaluate(expression):
            self.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 10)))")

    def settle(self):
        self.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click(self, x, y, count=1):
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=count)
        self.settle()

    def key(self, key, text=None):
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **({"text": text} if text else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)
        self.settle()

    def type(self, text):
        self.call("Input.insertText", text=text)
        self.settle()

    def wheel(self, x, y, by):
        self.call("Input.dispatchMouseEvent", type="mouseWheel", x=x, y=y, deltaX=0, deltaY=by)
        self.settle()

    def screenshot(self, path):
        with open(path, "wb") as out:
            out.write(base64.b64decode(self.call("Page.captureScreenshot")["data"]))

    def close(self):
        self.process.kill()
        self.process.wait()
        self.out.close()
        os.close(self.into)
        shutil.rmtree(self.scratch, ignore_errors=True)


@functools.lru_cache(maxsize=None)
def shared():
    """The browser of this process."""
    browser = Browser()
    atexit.register(browser.close)
    return browser


def expire(*_):
    raise TimeoutError(f"not finished after {LIMIT} s")


class BrowserTest(unittest.TestCase):
    """A class makes its `folder`: a page must not complain, and a test not wait for ever."""
    size = 1280, 760

    @classmethod
    def setUpClass(cls):
        cls.browser = shared()

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder, ignore_errors=True)

    def setUp(self):
        self.addCleanup(signal.signal, signal.SIGALRM, signal.signal(signal.SIGALRM, expire))
        signal.alarm(LIMIT)
        self.addCleanup(signal.alarm, 0)
        self.browser.appear(*self.size)
        self.browser.server = getattr(self, "address", None)
        self.browser.complaints.clear()

    def tearDown(self):
        self.assertEqual(self.browser.complaints, [])

    def picture(self, name):
        folder = os.environ.get("TRACER_SCREENSHOTS")
        if folder:
            os.makedirs(folder, exist_ok=True)
            self.browser.screenshot(os.path.join(folder, name + ".png"))
