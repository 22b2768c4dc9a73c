"""report.html in a browser: Chromium opens it from file:// and uses it as a reader does."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

import page_run
from plots.__main__ import main
from plots.page import write

playwright = pytest.importorskip("playwright.sync_api",
                                 reason="no playwright (scripts/setup.sh test)")
axe = pytest.importorskip("axe_playwright_python.sync_playwright",
                          reason="no axe (scripts/setup.sh test)")

BROWSER = next((path for name in ("chromium", "chromium-browser", "google-chrome")
                if (path := shutil.which(name))),
               None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium (scripts/setup.sh test)")
TIMEOUT_MS = 5000


@pytest.fixture(scope="module")
def address(tmp_path_factory) -> str:
    folder = page_run.write(tmp_path_factory.mktemp("browser") / "run")
    assert main(["page", str(folder)]) == 0
    return f"file://{folder / write.FILE}"


@pytest.fixture(scope="module")
def browser():
    with playwright.sync_playwright() as runner:
        # A container has neither user namespaces for the sandbox nor a large /dev/shm.
        found = runner.chromium.launch(executable_path=BROWSER,
                                       args=["--no-sandbox", "--disable-dev-shm-usage"])
        yield found
        found.close()


@pytest.fixture
def opened(browser, address):
    """Opens the page; fails on an error in its console and on any request but the one for the
    file."""
    contexts, errors, requests = [], [], []

    def open_page(fragment: str = "", **options):
        context = browser.new_context(**({"viewport": {"width": 1280, "height": 860}} | options))
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(TIMEOUT_MS)
        page.on("console", lambda message: errors.append(message.text) if message.type == "error"
                else None)
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address + fragment)
        page.wait_for_selector("main:not([aria-busy])")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert errors == []
    assert {url.partition("#")[0] for url in requests if not url.startswith("data:")} <= {address}


def result_ms(page) -> float:
    return float(re.match(r"([\d.]+) ms", page.locator("#s-result").inner_text())[1])


def column(page, label: str) -> list[str]:
    labels = page.locator("#e-table thead th").all_inner_texts()
    return page.locator(
        f"#e-table tbody tr td:nth-child({labels.index(label) + 1})").all_inner_texts()


def test_choosing_rungs_moves_the_step(opened):
    page = opened()
    page.select_option("#s-network", "mlp")
    page.select_option("#s-threads", "1 thread")
    page.select_option("#s-use", "best")
    before = result_ms(page)
    assert page.locator("#s-result .mark").inner_text() == "measured"
    page.select_option("select[data-primitive=matmul]", "serial_ijk")
    assert result_ms(page) > 3 * before
    assert page.locator("#s-result .mark").inner_text().startswith("sum of single measurements")
    page.select_option("select[data-primitive=matmul]", "")
    assert result_ms(page) == before


def test_a_swapped_step_is_beside_the_libraries_and_a_loss_is_marked(opened):
    page = opened()
    page.select_option("#s-network", "mlp")
    page.select_option("#s-threads", "1 thread")
    page.select_option("#s-use", "best")
    assert page.locator("#s-result .faster").count() == 1  # 16 and 14 in run_folder.py
    page.select_option("#s-use", "serial")
    assert page.locator("#s-result .slower").inner_text().startswith(
        "slower than the libraries' step: 0.0")
    page.select_option("#s-use", "vendor")
    assert not page.locator("#s-result .faster, #s-result .slower").count()


def test_a_swap_that_was_measured_shows_the_measurement(opened):
    page = opened()
    page.select_option("#s-network", "mnist_cnn")
    page.select_option("#s-threads", "1 thread")
    page.select_option("#s-use", "best,matmul=serial_ijk")
    measured = result_ms(page)
    page.select_option("#s-use", "best")
    page.select_option("select[data-primitive=matmul]", "serial_ijk")
    assert page.locator("#s-result .mark").inner_text() == "measured"
    assert result_ms(page) == measured


def test_a_rung_in_one_layer_moves_that_layer_alone(opened):
    page = opened()
    page.select_option("#s-network", "mlp")
    page.locator("#swapper summary").click()
    before = column_of_layers(page)
    page.locator("#s-table tbody tr",
                 has_text="fc1").first.locator("select").select_option("serial_ijk")
    after = column_of_layers(page)
    assert [i for i, (a, b) in enumerate(zip(before, after)) if a != b] == [0]
    assert page.locator("#s-table tbody tr").first.inner_text().endswith("alone")


def column_of_layers(page) -> list[str]:
    return page.locator("#s-table tbody tr td:nth-child(4)").all_inner_texts()


def test_rows_sort_in_both_directions(opened):
    page = opened()
    button = page.get_by_role("button", name="µs", exact=True)
    button.click()
    rising = [float(v.replace(",", "")) for v in column(page, "µs")]
    assert rising == sorted(rising) and len(set(rising)) > 10
    assert page.locator("#e-table th[aria-sort=ascending]").inner_text() == "µs"
    button.click()
    falling = [float(v.replace(",", "")) for v in column(page, "µs")]
    assert falling == sorted(falling, reverse=True) and falling[0] > rising[-1]


def test_rows_filter_and_failed_rows_are_shown(opened):
    page = opened()
    total = page.locator("#e-count").inner_text()
    page.select_option("[data-filter=primitive]", "matmul")
    page.select_option("[data-filter=technique]", "pthread")
    assert set(column(page, "rung")) == {"pthread"} and set(column(page, "primitive")) == {"matmul"}
    page.select_option("[data-filter=technique]", "")
    page.select_option("[data-filter=primitive]", "")
    page.fill("#e-text", "mlp.fc1 broken")
    page.wait_for_function("document.querySelectorAll('#e-table tbody tr').length === 1")
    assert column(page, "status") == ["failed"]
    assert column(page, "remark") == [page_run.FAILED["reason"]]
    assert "1 failed" in page.locator("#e-count").inner_text()
    page.fill("#e-text", "")
    page.wait_for_function(f"document.getElementById('e-count').textContent === {total!r}")


def test_the_view_of_the_rows_is_in_the_address(opened):
    page = opened()
    page.select_option("[data-filter=primitive]", "matmul")
    page.select_option("[data-filter=technique]", "pthread")
    page.get_by_role("button", name="µs", exact=True).click()
    address, shown = page.url, column(page, "µs")
    assert "#rows:primitive=matmul&technique=pthread&sort=" in address
    page.goto("about:blank")
    page.goto(address)
    page.wait_for_selector("main:not([aria-busy])")
    assert column(page, "µs") == shown and set(column(page, "rung")) == {"pthread"}
    assert page.url == address
    page.select_option("[data-filter=technique]", "")
    page.select_option("[data-filter=primitive]", "")
    assert "technique" not in page.url


def test_measured_rows_come_first_and_no_match_says_so(opened):
    page = opened()
    assert set(column(page, "status")) == {"ok"}
    assert {place.split()[0] for place in column(page, "place")} == {"1"}
    page.fill("#e-text", "no such rung")
    page.wait_for_function("document.getElementById('e-count').textContent.startsWith('No row')")


def test_pages_of_rows_follow_each_other(opened):
    page = opened()
    first = column(page, "rung")
    assert len(first) == 50 and page.locator("#e-back").is_disabled()
    page.click("#e-next")
    assert page.locator("#e-page").inner_text().startswith("page 2 of ")
    page.click("#e-back")
    assert column(page, "rung") == first


def test_the_peak_is_on_top_of_the_rates(opened):
    page = opened()
    page.select_option("[data-filter=primitive]", "matmul")
    tops = page.evaluate(
        """[...document.querySelectorAll('#e-chart circle')].map(c => +c.getAttribute('cy'))""")
    peak = page.locator("#e-chart .guide").first.get_attribute("d")
    assert len(tops) > 50 and min(tops) >= float(re.match(r"M54 ([\d.]+)", peak)[1])


def test_anchors_lead_to_rungs(opened):
    page = opened()
    page.select_option("[data-filter=primitive]", "matmul")
    page.fill("#e-text", "blocked")
    page.wait_for_function("document.querySelector('#e-table tbody a').textContent === 'blocked'")
    page.locator("#e-table tbody a", has_text="blocked").first.click()
    assert page.url.endswith("#rung-matmul-blocked")
    assert page.locator("#rung-matmul-blocked").bounding_box()["y"] < 400
    page.goto(page.url.partition("#")[0] + "#src-kernels-matmul-cpu-blocked.cpp")
    assert page.locator("#src-kernels-matmul-cpu-blocked\\.cpp pre").is_visible()


def test_the_theme_switches_and_is_kept(opened):
    page = opened(color_scheme="light")
    background = "getComputedStyle(document.body).backgroundColor"
    light = page.evaluate(background)
    button = page.locator("#theme")
    button.click()
    assert page.evaluate(background) == light and button.inner_text() == "Theme: light"
    button.press("Enter")
    assert page.evaluate(background) != light and button.inner_text() == "Theme: dark"
    page.reload()
    assert button.inner_text() == "Theme: dark"
    assert opened(color_scheme="dark").evaluate(background) == "rgb(20, 23, 28)"


def test_the_command_of_a_row_is_copied(opened):
    page = opened(permissions=["clipboard-read", "clipboard-write"])
    page.select_option("[data-filter=primitive]", "matmul")
    button = page.locator("#e-table .copy").first
    button.click()
    page.wait_for_function("document.querySelector('#e-table .copy').textContent === 'Copied'")
    assert "stepladder bench matmul --variant" in page.evaluate("navigator.clipboard.readText()")


def test_without_javascript_everything_but_the_interactive_parts_is_there(opened):
    page = opened(java_script_enabled=False)
    assert page.locator("#answer .ladder").is_visible() and page.locator(".answer").is_visible()
    assert not page.locator("#swapper").is_visible() and not page.locator("#explore").is_visible()
    assert page.get_by_text("Sorting and filtering need JavaScript").is_visible()
    assert page.locator("#failed").is_visible() and page.get_by_text("Choosing rungs needs "
                                                                     "JavaScript").is_visible()


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_is_as_wide_as_the_screen(opened, width):
    page = opened(viewport={"width": width, "height": 844})
    assert page.evaluate("document.documentElement.scrollWidth") == width
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true; })")
    assert page.evaluate("document.documentElement.scrollWidth") == width


def test_the_rungs_are_closed_until_they_are_asked_for(opened):
    page = opened(viewport={"width": 1280, "height": 844})
    assert page.evaluate("document.documentElement.scrollHeight") < 12000
    assert page.locator("#rungs").bounding_box()["height"] < 1000
    page.goto(page.url.partition("#")[0] + "#rung-matmul-blocked")
    assert page.locator("#rung-matmul-blocked .headline").is_visible()


def test_on_paper_there_are_no_controls_and_a_light_background(opened):
    page = opened(color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#explore").is_visible() and page.locator(
        "#answer .ladder").is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(opened, scheme):
    page = opened(color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach((d, i) => { d.open = i < 6; })")
    found = axe.Axe().run(page, options={"resultTypes": ["violations"]}).response["violations"]
    serious = [(v["id"], [node["target"] for node in v["nodes"]][:3]) for v in found
               if v["impact"] in ("serious", "critical")]
    assert serious == []


def test_the_file_name_has_no_part_in_it(address, tmp_path, browser):
    """A folder with a space and a hash in its name."""
    folder = tmp_path / "a run #1"
    folder.mkdir()
    shutil.copyfile(Path(address.removeprefix("file://")), folder / write.FILE)
    page = browser.new_page()
    page.goto((folder / write.FILE).as_uri() + "#explorer")
    page.wait_for_selector("main:not([aria-busy])")
    assert page.locator("#e-table tbody tr").count() == 50
    page.close()
