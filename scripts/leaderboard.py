"""Merges graded labs into one page: what make leaderboard calls.

    leaderboard.py FILE|FOLDER… [--out leaderboard.html]

Reads the JSON files of make grade, of folders all `*.json` below them. Of several grades of a
person in a lab the best counts; "measure again" counts as not handed in. Those with equal totals
share a place.
"""

import argparse
import json
from collections import defaultdict
from pathlib import Path

from jinja2 import Template

import runner

PAGE = Template("""<!doctype html>
<html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Labs: points</title>
<style>
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 60rem; padding: 0 1rem;
       color: #1a1a1a; background: #fff }
div { overflow-x: auto }
table { border-collapse: collapse; width: 100% }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid #ddd }
th:nth-child(2), td:nth-child(2) { text-align: left }
.full { font-weight: bold }
@media (prefers-color-scheme: dark) { body { color: #eee; background: #1a1a1a }
  th, td { border-color: #444 } }
</style>
<h1>Labs: points</h1>
<p>{{ people|length }} people; 10 points a lab; a lab that was not handed in counts 0.</p>
<div><table>
<tr><th>place</th><th>name</th>
{% for lab, title in labs %}<th title="{{ title|e }}">{{ lab }}</th>{% endfor %}
<th>sum</th></tr>
{% for person in people %}
<tr><td>{{ person.place }}</td><td>{{ person.name|e }}</td>
{% for lab, _ in labs %}
<td{% if person.points.get(lab, 0) >= 10 %} class="full"{% endif %}>
{{- "%g"|format(person.points[lab]) if lab in person.points else "–" }}</td>
{% endfor %}
<td>{{ "%g"|format(person.sum) }}</td></tr>
{% endfor %}
</table></div>
</html>
""")


def grades(paths):
    """The grades of all files. Raises Refused for one that cannot be read."""
    files = []
    for path in map(Path, paths):
        if not path.exists():
            raise runner.Refused(f"RUNS={path}: no such file or folder")
        files += sorted(path.rglob("*.json")) if path.is_dir() else [path]
    found = []
    for file in files:
        try:
            grade = json.loads(file.read_text(encoding="utf-8"))
        except ValueError as error:
            raise runner.Refused(
                f"{file}: expected the JSON of make grade, found {error}") from error
        expected = {"lab", "title", "name", "points", "verdict"}
        if isinstance(grade, dict) and expected <= grade.keys() and grade["lab"][:2].isdigit():
            found.append(grade)
    if not found:
        raise runner.Refused(f"no file of make grade in {', '.join(map(str, paths))}")
    return found


def ranking(found):
    """(lab, title) of all labs, and the people: best first."""
    best, titles = defaultdict(dict), {}
    for grade in found:
        lab = grade["lab"][:2].lstrip("0")
        titles[lab] = grade["title"]
        if grade["points"] is not None:
            of_person = best[grade["name"]]
            of_person[lab] = max(of_person.get(lab, 0), grade["points"])
    people = [{"name": name, "points": points, "sum": round(sum(points.values()), 1)}
              for name, points in best.items()]
    people.sort(key=lambda person: (-person["sum"], person["name"]))
    for i, person in enumerate(people):
        tied = i > 0 and person["sum"] == people[i - 1]["sum"]
        person["place"] = people[i - 1]["place"] if tied else i + 1
    return sorted(titles.items(), key=lambda item: int(item[0])), people


def leaderboard():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--out", default="build/labs/leaderboard.html")
    arguments = parser.parse_args()
    labs, people = ranking(grades(arguments.paths))
    out = Path(arguments.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(PAGE.render(labs=labs, people=people), encoding="utf-8")
    for person in people:
        by_lab = "  ".join(f"{lab}: {person['points'][lab]:g}"
                           for lab, _ in labs if lab in person["points"])
        print(f"{person['place']:3}  {person['name']:20} {person['sum']:5g}  {by_lab}")
    print(out)
    return 0


if __name__ == "__main__":
    runner.main("leaderboard", leaderboard)
