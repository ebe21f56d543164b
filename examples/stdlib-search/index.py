"""Step 3: build a full-text index of every function, class and module, and a cross-reference of every name."""

from __future__ import annotations

import ast
import json
import sqlite3
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK = Path("build/stdlib-search")
SOURCES = WORK / "sources"

SCHEMA = """
CREATE TABLE modules (id INTEGER PRIMARY KEY, name TEXT NOT NULL, path TEXT NOT NULL);
CREATE TABLE definitions (
  id INTEGER PRIMARY KEY, module INTEGER NOT NULL, name TEXT NOT NULL, kind TEXT NOT NULL,
  first INTEGER NOT NULL, last INTEGER NOT NULL, doc TEXT NOT NULL, body TEXT NOT NULL);
CREATE TABLE names (id INTEGER PRIMARY KEY, name TEXT NOT NULL);
CREATE TABLE uses (name INTEGER, module INTEGER, line INTEGER, PRIMARY KEY (name, module, line)) WITHOUT ROWID;
CREATE TABLE settings (name TEXT PRIMARY KEY, value TEXT NOT NULL);
"""

# The best full-text engine that this Python's SQLite was built with; `plain` always works.
ENGINES = {
    "fts5": "CREATE VIRTUAL TABLE texts USING fts5(name, doc, body, tokenize = 'porter unicode61', prefix = '2 3')",
    "fts4": "CREATE VIRTUAL TABLE texts USING fts4(name, doc, body, tokenize=porter, prefix='2,3')",
    "plain": "CREATE TABLE texts (name TEXT, doc TEXT, body TEXT)",
}


def create(path: Path) -> tuple[sqlite3.Connection, str]:
    """An empty database and the name of its full-text engine."""
    path.unlink(missing_ok=True)
    database = sqlite3.connect(path)
    database.execute("PRAGMA journal_mode = OFF")
    database.execute("PRAGMA synchronous = OFF")
    database.executescript(SCHEMA)
    for engine, statement in ENGINES.items():
        try:
            database.execute(statement)
        except sqlite3.OperationalError:
            print(f"index: this SQLite {sqlite3.sqlite_version} has no {engine}", flush=True)
            continue
        database.execute("INSERT INTO settings VALUES ('engine', ?)", (engine,))
        return database, engine
    raise AssertionError("a plain table can always be created")


def definitions(tree: ast.AST, prefix: str, lines: list[str]) -> Iterator[tuple[str, str, int, int, str, str]]:
    """Name, kind, first and last line, docstring and source of every class and function."""
    for node in ast.iter_child_nodes(tree):
        if not isinstance(node, (ast.stmt, ast.ExceptHandler, ast.match_case)):
            continue
        name = prefix
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            name = f"{prefix}.{node.name}"
            kind = "class" if isinstance(node, ast.ClassDef) else "function"
            last = node.end_lineno or node.lineno
            # A class's own text ends where its methods begin: they are entries of their own.
            end = min(
                (item.lineno - 1 for item in node.body if kind == "class" and hasattr(item, "body")), default=last
            )
            body = "\n".join(lines[node.lineno - 1 : end])
            yield name, kind, node.lineno, last, ast.get_docstring(node) or "", body
        yield from definitions(node, name, lines)


def uses(tree: ast.AST) -> Iterator[tuple[str, int]]:
    """Every place where a name is read, written, called or taken from an object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            yield node.id, node.lineno
        elif isinstance(node, ast.Attribute):
            yield node.attr, node.end_lineno or node.lineno
        elif isinstance(node, ast.keyword) and node.arg:
            yield node.arg, node.value.lineno


def main() -> int:
    warnings.simplefilter("ignore")
    listing = json.loads((WORK / "sources.json").read_text(encoding="utf-8"))["modules"]
    building = WORK / "index.db.part"
    database, engine = create(building)
    print(f"index: full-text engine {engine}, SQLite {sqlite3.sqlite_version}", flush=True)
    identifiers: dict[str, int] = {}
    entries = 0
    for number, (module, facts) in enumerate(sorted(listing.items()), start=1):
        content = (SOURCES / facts["path"]).read_bytes()
        tree = ast.parse(content)
        lines = content.decode("utf-8", errors="replace").splitlines()
        database.execute("INSERT INTO modules VALUES (?, ?, ?)", (number, module, facts["path"]))
        rows = [(module, "module", 1, len(lines), ast.get_docstring(tree) or "", ""), *definitions(tree, module, lines)]
        for name, kind, first, last, doc, body in rows:
            entries += 1
            row = (entries, number, name, kind, first, last, doc, body)
            database.execute("INSERT INTO definitions VALUES (?, ?, ?, ?, ?, ?, ?, ?)", row)
            text = (entries, name.replace("_", " "), doc, body)
            database.execute("INSERT INTO texts (rowid, name, doc, body) VALUES (?, ?, ?, ?)", text)
        places = [(identifiers.setdefault(name, len(identifiers) + 1), number, line) for name, line in uses(tree)]
        database.executemany("INSERT OR IGNORE INTO uses VALUES (?, ?, ?)", places)
        if number % 50 == 0 or number == len(listing):
            print(f"index: {number} of {len(listing)} modules, {entries:,} entries", flush=True)

    database.executemany("INSERT INTO names VALUES (?, ?)", [(key, name) for name, key in identifiers.items()])
    database.execute("CREATE UNIQUE INDEX names_by_name ON names (name)")
    if engine != "plain":
        print("index: merging the full-text index into one segment", flush=True)
        database.execute("INSERT INTO texts (texts) VALUES ('optimize')")
    database.commit()
    database.execute("VACUUM")
    database.close()
    building.replace(WORK / "index.db")
    print(f"index: {len(identifiers):,} names, {(WORK / 'index.db').stat().st_size / 1e6:.1f} MB", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
