"""scripts/setup.sh: what it installs, what it says, and what it leaves alone."""

import re

import pytest

LIBRARIES = ["libfmt-dev", "libhwloc-dev"]  # stand for any package that may be missing


def packages_in(script):
    text = re.search(r"^packages=\(\n(.*?)^\)", script.read_text(), re.M | re.S).group(1)
    return text.split()


@pytest.fixture
def machine(sandbox):
    """A Debian where everything is installed, seen by root. Tests take things away from it."""
    script = sandbox.root / "scripts/setup.sh"
    sandbox.installed = sandbox.root / "installed-packages"
    sandbox.installed.write_text("\n".join(packages_in(script)) + "\n")
    sandbox.fake("dpkg-query", f"""
for name in "${{@:3}}"; do
  if grep -qx "$name" {sandbox.installed}; then echo "installed $name"; fi
done""")
    sandbox.fake("apt-get", f"""
[[ " $* " != *" install "* ]] || printf '%s\\n' "$@" >>{sandbox.installed}""")
    sandbox.fake("id", "echo 0")

    # The interpreter is named by its full path: the copy of the script gets the fake's path.
    python = sandbox.bin / "python3"
    script.write_text(script.read_text().replace("/usr/bin/python3", str(python)))
    venv_python = sandbox.bin / "venv-python"
    sandbox.fake("venv-python")
    sandbox.fake("python3", f"""
case "$*" in
  --version) echo Python 3.11.2 ;;
  "-m venv "*)
    folder=${{*: -1}}
    mkdir -p $folder/bin; rm -f $folder/bin/python; cp {venv_python} $folder/bin/python ;;
esac""")
    (sandbox.bin / "cp").symlink_to("/bin/cp")
    for folder, package in (("plots", "numpy"), ("tests", "playwright")):
        (sandbox.root / folder).mkdir()
        (sandbox.root / folder / "requirements.txt").write_text(f"{package}\n")
    sandbox.run("setup.sh")  # makes .venv
    return sandbox


def take_away(machine, *names):
    kept = [name for name in machine.installed.read_text().split() if name not in names]
    machine.installed.write_text("\n".join(kept) + "\n")


def without_apt(machine):
    machine.remove("apt-get")
    machine.remove("dpkg-query")
    machine.fake("cmake")


def with_python(machine, body):
    """The interpreter of .venv runs this."""
    machine.fake("venv-python", body, machine.root / ".venv/bin")
    (machine.root / ".venv/bin/venv-python").replace(machine.root / ".venv/bin/python")


def with_headers_in_prefix(machine):
    """All libraries are in a folder, which the compiler finds only with -I of its include."""
    prefix = machine.root / "prefix"
    include = prefix / "include"
    text = (machine.root / "scripts/setup.sh").read_text()
    block = re.search(r"^required_headers=\(\n(.*?)^\)", text, re.M | re.S).group(1)
    for header in re.findall(r"\S+\.h(?:pp)?\b", block):
        (include / header).parent.mkdir(parents=True, exist_ok=True)
        (include / header).touch()
    machine.fake("c++", f"""
source=$(cat)
header=${{source#*<}}
[[ -z $source ]] || [[ " $* " == *" -I{include} "* && -f {include}/${{header%>}} ]]""")
    return str(prefix)


def test_says_and_does_nothing_when_nothing_is_missing(machine):
    assert machine.run("setup.sh", lines=0).stdout == ""
    assert machine.calls("apt-get") == []
    assert not any("pip" in call for call in machine.calls("venv-python"))


def test_root_installs_only_what_is_missing_and_then_nothing(machine):
    take_away(machine, *LIBRARIES)
    result = machine.run("setup.sh")
    update, install = machine.calls("apt-get")
    assert update == "update"
    assert install.endswith(f"install -y --no-install-recommends {' '.join(LIBRARIES)}")
    assert len(result.stdout.splitlines()) == 2  # one line for each step
    assert machine.run("setup.sh").stdout == ""


def test_user_with_password_less_sudo_installs_through_it(machine):
    take_away(machine, *LIBRARIES)
    machine.fake("id", "echo 1000")
    machine.fake("sudo", '[[ $1 == -n ]] && shift && { [[ $1 == true ]] || "$@"; }')
    machine.run("setup.sh")
    assert len(machine.calls("sudo")) == 3  # the question, update, install
    assert machine.calls("apt-get")[-1].endswith(" ".join(LIBRARIES))


@pytest.mark.parametrize("sudo", ["asks for a password", "absent"])
def test_other_user_is_told_the_one_command(machine, sudo):
    take_away(machine, *LIBRARIES)
    machine.fake("id", "echo 1000")
    if sudo != "absent":
        machine.fake("sudo", "exit 1")
    result = machine.run("setup.sh", status=1)
    assert machine.calls("apt-get") == []
    shell = "su root -c" if sudo == "absent" else "sudo sh -c"
    commands = [line.strip() for line in result.stderr.splitlines() if "apt-get install" in line]
    assert commands == [f"{shell} 'apt-get update && apt-get install -y --no-install-recommends "
                        f"{' '.join(LIBRARIES)}'"]


def test_failing_apt_is_tried_twice_and_shows_the_end_of_its_output(machine):
    take_away(machine, *LIBRARIES)
    machine.fake("apt-get", """
[[ $1 != update ]] || exit 0
for i in {1..30}; do echo "line $i"; done
echo 'E: no space left' >&2
exit 100""")
    result = machine.run("setup.sh", status=1, error=("E: no space left", "line 30"))
    assert len(machine.calls("apt-get")) == 3  # update, and the install twice
    assert "line 2\n" not in result.stderr
    log = machine.root / "build/setup.log"
    assert str(log) in result.stderr and "line 2\n" in log.read_text()


def test_a_download_that_fails_once_is_no_failure(machine):
    take_away(machine, *LIBRARIES)
    machine.fake("apt-get", "[[ $1 == update || -e tried ]] || { touch tried; exit 100; }")
    machine.run("setup.sh")


def test_package_lists_that_cannot_be_read_do_not_stop_the_install(machine):
    take_away(machine, *LIBRARIES)
    machine.fake("apt-get", "[[ $1 != update ]]")
    machine.run("setup.sh")
    assert machine.calls("apt-get")[-1].endswith(" ".join(LIBRARIES))


def test_python_packages_are_installed_again_when_the_requirements_change(machine):
    (machine.root / "plots/requirements.txt").write_text("numpy\nmatplotlib\n")
    machine.run("setup.sh")
    assert sum("pip install" in call for call in machine.calls("venv-python")) == 1
    assert machine.run("setup.sh").stdout == ""


def test_failing_pip_shows_its_output_and_is_tried_again_next_time(machine):
    machine.fake("venv-python", '[[ "$*" != *pip* ]] || { echo "no matching version"; exit 1; }')
    (machine.root / "plots/requirements.txt").write_text("numpy==0\n")
    for _ in range(2):
        machine.run("setup.sh", status=1, error=("no matching version", "setup.log"))
        assert sum("pip install" in call for call in machine.calls("venv-python")) == 2


def test_lint_and_format_ask_for_their_tools(machine):
    machine.run("setup.sh", "format")
    assert machine.calls("apt-get")[-1].endswith(" clang-format")
    machine.run("setup.sh", "lint")
    assert machine.calls("apt-get")[-1].endswith(" clang-tidy shellcheck libomp-dev")
    assert any("tests/requirements.txt" in call for call in machine.calls("venv-python"))


def test_without_apt_it_names_what_is_needed(machine):
    without_apt(machine)
    machine.fake("c++", "[[ -z $(cat) ]]")  # it finds no header
    machine.run("setup.sh", status=1, error=(
        "CLI11", "nlohmann-json", "fmt", "hwloc", "Google Benchmark", "zlib", "xsimd",
        "GoogleTest", "CMAKE_PREFIX_PATH"))


def test_without_apt_libraries_of_the_system_are_enough(machine):
    without_apt(machine)
    machine.fake("c++", "cat >/dev/null")
    machine.run("setup.sh", lines=0)


def test_without_apt_or_compiler_it_asks_for_a_compiler(machine):
    without_apt(machine)
    machine.remove("cmake")
    machine.run("setup.sh", status=1, error=("C++20 compiler", "CMake"))


@pytest.mark.parametrize("apt", ["absent", "without rights"])
def test_a_prefix_folder_with_the_libraries_is_enough(machine, apt):
    if apt == "absent":
        without_apt(machine)
    else:
        take_away(machine, *LIBRARIES)
        machine.fake("id", "echo 1000")
        machine.fake("cmake")
    prefix = with_headers_in_prefix(machine)
    result = machine.run("setup.sh", CMAKE_PREFIX_PATH=f"/opt/other:{prefix}")
    absent = re.search("Continuing without: (.*)", result.stdout).group(1)
    assert "ninja" in absent and "MPI" in absent


def test_without_apt_the_system_python_packages_are_taken(machine):
    without_apt(machine)
    prefix = with_headers_in_prefix(machine)
    (machine.root / "plots/requirements.txt").write_text("matplotlib\n")
    machine.run("setup.sh", CMAKE_PREFIX_PATH=prefix)
    assert any("--system-site-packages" in call for call in machine.calls("python3"))
    assert not any("pip" in call for call in machine.calls("venv-python"))


def test_without_apt_and_python_packages_it_goes_on_without_charts(machine):
    without_apt(machine)
    prefix = with_headers_in_prefix(machine)
    machine.fake("venv-python", '[[ "$*" != *pip* && "$*" != *matplotlib* ]]')
    (machine.root / "plots/requirements.txt").write_text("matplotlib\n")
    result = machine.run("setup.sh", CMAKE_PREFIX_PATH=prefix)
    assert "no charts" in result.stdout


def test_only_make_test_needs_a_browser(machine):
    machine.run("setup.sh")
    assert machine.calls("apt-get") == []
    machine.run("setup.sh", "test")
    assert machine.calls("apt-get")[-1].endswith(
        "install -y --no-install-recommends chromium ccache oclgrind")
    assert sum("tests/requirements.txt" in call for call in machine.calls("venv-python")) == 1
    assert machine.run("setup.sh", "test").stdout == ""


def test_without_apt_there_may_be_no_browser(machine):
    without_apt(machine)
    with_python(machine, '[[ "$*" != *tests/requirements.txt* ]]')
    result = machine.run("setup.sh", "test")
    assert "no tests in a browser" in result.stdout


def test_the_newest_vendor_libraries_go_into_a_folder_of_their_own_once(machine):
    result = machine.run("setup.sh", "libraries")
    assert "LIBRARIES=system keeps the system's" in result.stdout
    [call] = [call for call in machine.calls("venv-python") if "pip install" in call]
    assert " mkl " in call and "--no-deps" in call
    assert machine.run("setup.sh", "libraries").stdout == ""


def test_without_the_newest_vendor_libraries_it_takes_those_of_the_system(machine):
    machine.fake("venv-python", '[[ "$*" != *pip* ]] || { echo "no space left"; exit 1; }')
    result = machine.run("setup.sh", "libraries")
    assert "the vendor rungs use the system's libraries" in result.stdout
    assert not (machine.root / ".libraries").exists()


def test_an_unknown_mode_is_refused(machine):
    machine.run("setup.sh", "everything", status=1, error="everything")


def data_calls(machine):
    return [call for call in machine.calls("venv-python") if call == "scripts/data.py"]


def test_it_brings_the_digits_except_for_lint_and_format(machine):
    for mode, calls in ((), 1), (("data",), 1), (("lint",), 0), (("format",), 0), (("fuzz",), 0), \
            (("test",), 0):
        machine.run("setup.sh", *mode)
        assert len(data_calls(machine)) == calls, mode


def test_only_make_data_fails_without_the_digits(machine):
    with_python(machine, '[[ $1 != scripts/data.py ]] || { echo "No real digits" >&2; exit 1; }')
    assert machine.run("setup.sh").stderr == "No real digits\n"
    assert machine.run("setup.sh", "data", status=1).stderr == "No real digits\n"
    assert len(data_calls(machine)) == 1


def test_make_data_without_python_says_what_is_missing(machine):
    without_apt(machine)
    prefix = with_headers_in_prefix(machine)
    machine.remove("python3")
    (machine.root / ".venv/bin/python").unlink()
    machine.run("setup.sh", CMAKE_PREFIX_PATH=prefix)
    machine.run("setup.sh", "data", CMAKE_PREFIX_PATH=prefix, status=1,
                error="Python 3 is needed")
