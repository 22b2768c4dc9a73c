"""No two files define different types of one name in one namespace: that would be undefined
behaviour, which no compiler reports.
"""

import re
from collections import defaultdict

from tests.commands import ROOT

OPENS = re.compile(
    r"(?:inline\s+)?namespace(?:\s+([\w:]+))?\s*\{|"
    r"(?:(?:class|struct|union|enum(?:\s+class)?)\s+(?:alignas\(\w+\)\s+)?"
    r"(\w+(?:::\w+)*)(?:<[^<>{};]*>)?(?:\s+final)?(?:\s*:(?!:)[^{};()]*)?)\s*\{|\{|\}")
# One namespace, several names: each instruction set has its own.
OF_EACH_ISA = "STEPLADDER_ISA"


def without_comments_and_strings(text):
    return re.sub(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'',
                  " ", text, flags=re.DOTALL)


def types_of(text):
    """The types that a file defines outside of other types, functions and unnamed namespaces."""
    stack = []  # the name of a namespace, "" of an unnamed one, None of any other brace
    for found in OPENS.finditer(without_comments_and_strings(text)):
        namespace, name = found.group(1), found.group(2)
        if found.group(0) == "}":
            if stack:
                stack.pop()
        elif "namespace" in found.group(0).split("{")[0]:
            stack.append(namespace or "")
        else:
            if name and all(stack):
                yield "::".join([part for part in stack if part != OF_EACH_ISA] + [name])
            stack.append(None)


def defined_twice(files):
    where = defaultdict(list)
    for path, text in files:
        for name in set(types_of(text)):  # a file may have one for each value of a macro
            where[name].append(path)
    return {name: paths for name, paths in where.items() if len(paths) > 1}


def test_no_type_is_defined_twice():
    files = [(str(path.relative_to(ROOT)), path.read_text())
             for folder in ("bench", "harness", "kernels")
             for path in sorted((ROOT / folder).rglob("*")) if path.suffix in (".hpp", ".cpp")]
    assert sum(len(list(types_of(text))) for _, text in files) > 300
    twice = defined_twice(files)
    assert not twice, "\n".join(
        f"{name}: {', '.join(paths)}" for name, paths in sorted(twice.items()))


def test_two_definitions_are_found():
    first = "namespace a {\nclass Progress {\n  struct Inner { int x; };\n};\n}  // namespace a\n"
    second = ("namespace a {\nnamespace {\nstruct Inner {};\n}\n"
              "struct Progress final : Base<int> { void f() { struct Local {}; } };\n}\n")
    assert defined_twice([("x.hpp", first), ("y.hpp", second)]) == {
        "a::Progress": ["x.hpp", "y.hpp"]}
    assert defined_twice([("x.hpp", first), ("y.hpp", second.replace("namespace a",
                                                                     "namespace b"))]) == {}
    assert defined_twice([("x.hpp", first),
                          ("y.hpp", "class Progress;  // class Progress {\n")]) == {}
