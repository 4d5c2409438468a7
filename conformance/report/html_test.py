#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The HTML report, as a file and in a real browser.

Checks that each document is well-formed, loads nothing, and has only its own script. If Chromium
is installed, takes screenshots (in the outputs of the test) in light, dark, wide and narrow. It
also checks the documents that the browser has made: filters, positions, colours, and that no text
of a testee acts. Without Chromium it says so, and fails only if KMES_NEEDS_BROWSER is set.
"""

import base64
import hashlib
import html.parser
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

FOLDER = os.environ["TEST_TMPDIR"]
OUTPUTS = os.environ.get("TEST_UNDECLARED_OUTPUTS_DIR", FOLDER)
SAMPLE = "conformance/report/sample_report"
RUNNER = "conformance/kmes-conformance"
BROKEN = "conformance/testees/broken_no-recheck"
BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
SCALE = float(os.environ.get("KMES_TIMEOUT_SCALE") or 1)
VOID = {"meta", "col", "br", "input", "img", "link"}

# Runs in a copy of the page without the policy, and reports positions and colours.
PROBE = """
<script>
(() => {
  const box = (selector) => {
    const item = document.querySelector(selector);
    if (item === null) return null;
    const place = item.getBoundingClientRect();
    return [place.left, place.top, place.width, place.height];
  };
  const shown = (selector) => Array.from(document.querySelectorAll(selector))
    .filter((item) => item.getClientRects().length > 0).length;
  const result = {
    width: document.documentElement.scrollWidth,
    window: document.documentElement.clientWidth,
    back: getComputedStyle(document.body).backgroundColor,
    producer: box(".trace td.p > .event"),
    thread: box(".trace td.t > .event"),
    decisive: shown(".trace tr.decisive .event"),
    border: getComputedStyle(document.querySelector(".trace tr.decisive .event")).borderTopColor,
    plain: getComputedStyle(document.querySelector(".trace tr:not(.decisive) .event"))
      .borderTopColor,
    numbers: Array.from(document.querySelectorAll(".trace:first-of-type td.n"))
      .map((cell) => [Number(cell.textContent), cell.getBoundingClientRect().top])
      .filter(([number]) => number > 0),
    filters: shown("#filters"),
    title: document.title,
  };
  const out = document.createElement("pre");
  out.id = "probe";
  out.textContent = JSON.stringify(result);
  document.body.append(out);
})();
</script>
"""


class Page(html.parser.HTMLParser):
    """Elements, attributes, and the texts of the script and the style."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.open = []
        self.attributes = []
        self.texts = {"script": [], "style": []}
        self.mistakes = []
        self.rows = []
        self.feed(text)
        self.close()
        if self.open:
            self.mistakes.append(f"left open: {self.open}")

    def handle_starttag(self, tag, attrs):
        self.attributes += [(tag, name, value) for name, value in attrs]
        if tag not in VOID:
            self.open.append(tag)
        if tag in self.texts:
            self.texts[tag].append("")
        if tag == "tr" and dict(attrs).get("data-verdict"):
            self.rows.append(dict(attrs))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.mistakes.append(f"</{tag}> in {self.getpos()}")

    def handle_data(self, data):
        if self.open and self.open[-1] in self.texts:
            self.texts[self.open[-1]][-1] += data


def write(name, text):
    path = os.path.join(FOLDER, name)
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    return path


def read(path):
    with open(path, encoding="utf-8") as file:
        return file.read()


def make_documents():
    """The paths of a sample, a hostile one, and the report of a real run."""
    paths = {}
    for name, words in {"sample": [], "hostile": ["hostile"]}.items():
        made = subprocess.run([SAMPLE, "html", *words], check=True, stdout=subprocess.PIPE)
        paths[name] = write(name + ".html", made.stdout.decode("utf-8"))
    paths["run"] = os.path.join(FOLDER, "run.html")
    run = subprocess.run(
        [RUNNER, "--cpus", "1", "--filter", "E2/event-at-every-step", "--report",
         "html:" + paths["run"], "--", BROKEN],
        stdout=subprocess.PIPE, check=False)
    assert run.returncode == 1, run.stdout
    return paths


def chromium(path, *words):
    command = [
        BROWSER, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage",
        "--hide-scrollbars", "--no-first-run", "--host-resolver-rules=MAP * ~NOTFOUND",
        "--user-data-dir=" + os.path.join(FOLDER, "profile"), *words, path]
    environment = {**os.environ, "HOME": FOLDER, "XDG_RUNTIME_DIR": FOLDER}
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False,
                          timeout=120 * SCALE, env=environment)
    if done.returncode != 0:
        raise AssertionError(f"chromium: {done.stderr.decode(errors='replace')[-2000:]}")
    return done.stdout.decode("utf-8")


def screenshot(path, name, width, height, *words):
    """The size of the picture, from its header."""
    picture = os.path.join(OUTPUTS, name + ".png")
    chromium("file://" + path, f"--window-size={width},{height}", "--screenshot=" + picture,
             *words)
    with open(picture, "rb") as file:
        data = file.read()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    # A picture of one colour takes far fewer bytes.
    assert len(data) > 10000, f"{name}: {len(data)} bytes"
    return struct.unpack(">II", data[16:24])


def probe(name, path, width, *words):
    text = read(path).replace("http-equiv=\"Content-Security-Policy\"", "name=\"policy\"")
    copy = write(name + "-probe.html", text.replace("</body>", PROBE + "</body>"))
    dom = chromium("file://" + copy, f"--window-size={width},1500", "--dump-dom", *words)
    begin = dom.index("<pre id=\"probe\">") + len("<pre id=\"probe\">")
    import html as entities
    return json.loads(entities.unescape(dom[begin:dom.index("</pre>", begin)]))


class File(unittest.TestCase):
    def test_documents_are_well_formed_and_load_nothing(self):
        for name, path in PATHS.items():
            with self.subTest(name):
                page = Page(read(path))
                self.assertEqual(page.mistakes, [])
                self.assertEqual(len(page.texts["script"]), 1)
                self.assertEqual(len(page.texts["style"]), 1)
                for tag, attribute, value in page.attributes:
                    self.assertFalse(attribute.startswith("on"), (tag, attribute))
                    self.assertNotIn(attribute, ("src", "style", "action", "data", "srcset"))
                    if attribute == "href":
                        self.assertRegex(value, "^#(case|step)-[0-9-]+$")
                for text in page.texts["style"]:
                    self.assertNotIn("url(", text)
                    self.assertNotIn("@import", text)

    def test_the_policy_permits_the_own_script_only(self):
        for path in PATHS.values():
            page = Page(read(path))
            policy = dict((name, value) for tag, name, value in page.attributes
                          if tag == "meta" and name == "content" and "default-src" in value)
            for kind in ("script", "style"):
                digest = hashlib.sha256(page.texts[kind][0].encode("utf-8")).digest()
                word = f"{kind}-src 'sha256-{base64.b64encode(digest).decode()}'"
                self.assertIn(word, policy["content"])
            self.assertIn("default-src 'none'", policy["content"])

    def test_texts_are_bounded(self):
        self.assertLess(os.path.getsize(PATHS["hostile"]), 2_000_000)
        self.assertIn("more bytes)", read(PATHS["hostile"]))

    def test_each_case_has_a_row(self):
        rows = Page(read(PATHS["sample"])).rows
        self.assertEqual([row["data-verdict"] for row in rows],
                         ["pass", "fail", "inconclusive", "unsupported", "suite_error"])


@unittest.skipIf(BROWSER is None, "chromium is not installed")
class Browser(unittest.TestCase):
    def test_filters(self):
        sample = "file://" + PATHS["sample"]
        dom = chromium(sample, "--dump-dom")
        self.assertIn("<output>5 of 5 cases</output>", dom)
        self.assertNotIn("<form id=\"filters\" class=\"card\" hidden", dom)
        dom = chromium(sample + "#verdict=fail", "--dump-dom")
        self.assertIn("<output>1 of 5 cases</output>", dom)
        dom = chromium(sample + "#level=must&text=UNSUPP", "--dump-dom")
        self.assertIn("<output>1 of 5 cases</output>", dom)
        # A link to a case shows it, even if a filter had hidden it.
        dom = chromium(sample + "#case-2", "--dump-dom")
        article = dom[dom.index("id=\"case-2\""):]
        self.assertRegex(article[:article.index("<summary>")], "<details open=")

    def test_no_text_of_a_testee_acts(self):
        seen = probe("hostile", PATHS["hostile"], 1280)
        self.assertTrue(seen["title"].startswith("KMES conformance: "), seen["title"])
        dom = chromium("file://" + PATHS["hostile"], "--dump-dom")
        self.assertEqual(dom.count("<script"), 1)
        self.assertEqual(dom.count("<img"), 0)
        self.assertIn("<output>5 of 5 cases</output>", dom)

    def test_the_trace_is_a_sequence_diagram(self):
        for name in ("sample", "run"):
            with self.subTest(name):
                seen = probe(name, PATHS[name], 1280)
                self.assertLess(seen["producer"][0] + seen["producer"][2], seen["thread"][0] + 1)
                self.assertGreaterEqual(seen["decisive"], 2)
                self.assertNotEqual(seen["border"], seen["plain"])
                numbers = [number for number, _ in seen["numbers"]]
                tops = [top for _, top in seen["numbers"]]
                self.assertEqual(numbers, sorted(numbers))
                self.assertEqual(tops, sorted(tops))
                self.assertGreater(tops[-1], tops[0])

    def test_wide_and_narrow_fit_the_window(self):
        for name in ("sample", "hostile", "run"):
            for width in (1280, 500):
                with self.subTest(name=name, width=width):
                    seen = probe(name, PATHS[name], width)
                    self.assertLessEqual(seen["width"], seen["window"])
                    self.assertEqual(seen["filters"], 1)

    def test_light_and_dark(self):
        light = probe("sample", PATHS["sample"], 1280, "--blink-settings=preferredColorScheme=1")
        dark = probe("sample", PATHS["sample"], 1280, "--blink-settings=preferredColorScheme=0")
        brightness = [sum(int(part) for part in seen["back"][4:-1].split(","))
                      for seen in (light, dark)]
        self.assertGreater(brightness[0], 600)
        self.assertLess(brightness[1], 150)

    def test_screenshots(self):
        for name in ("sample", "run"):
            for theme, scheme in (("light", 1), ("dark", 0)):
                for form, width in (("wide", 1280), ("narrow", 500)):
                    size = screenshot(PATHS[name], f"{name}-{theme}-{form}", width, 2400,
                                      f"--blink-settings=preferredColorScheme={scheme}")
                    self.assertEqual(size, (width, 2400))

    def test_it_prints(self):
        document = os.path.join(OUTPUTS, "sample.pdf")
        chromium("file://" + PATHS["sample"], "--no-pdf-header-footer",
                 "--print-to-pdf=" + document)
        with open(document, "rb") as file:
            self.assertEqual(file.read(5), b"%PDF-")


if __name__ == "__main__":
    PATHS = make_documents()
    if BROWSER is None:
        print("SKIPPED: the checks in a browser; chromium is not installed")
        if os.environ.get("KMES_NEEDS_BROWSER"):
            sys.exit(1)
    unittest.main(verbosity=2)
