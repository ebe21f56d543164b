"""Step 4: put questions to the index, and find functions that are near copies of each other."""

from __future__ import annotations

import json
import re
import sqlite3
import zlib
from collections import defaultdict
from itertools import combinations
from pathlib import Path
from random import Random
from typing import Any

WORK = Path("build/stdlib-search")

# Written so that FTS5 and FTS4 read them alike; a plain table looks for the words.
QUESTIONS = {
    "Who replaces a file atomically?": "atomic* file replace",
    "Where do we wait with a timeout?": "wait timeout expire*",
    "Who takes a lock and gives it back?": "acquire release lock",
    "What deals with time zones?": "timezone offset utc*",
    "Who escapes text for HTML or XML?": "escape special char* quot*",
    "Where are temporary files made?": '"temporary file"',
    "Who retries?": "retry OR retries",
    "What is a context manager?": '"context manager"',
    "Who speaks of security?": "insecure OR security OR untrusted OR malicious",
    "What is deprecated?": "deprecated remov*",
    "Who starts a child process?": "fork* exec* child process",
    "Where are random numbers made?": "random seed generator",
    "Who admits to a hack?": "hack OR kludge OR workaround OR xxx",
    "What needs a buffer?": "buffer flush writ*",
    "Who walks a folder tree?": "walk director* tree",
    "What compares version numbers?": "version compar*",
}

ORDERS = {
    "fts5": "texts MATCH ? ORDER BY bm25(texts, 8.0, 4.0, 1.0), texts.rowid",
    "fts4": "texts MATCH ? ORDER BY length(offsets(texts)) DESC, texts.rowid",
}

FACTS = {
    "Names used in the most modules": """
        SELECT n.name, count(DISTINCT u.module) || ' modules', count(*) || ' places' FROM uses u JOIN names n
        ON n.id = u.name GROUP BY u.name ORDER BY count(DISTINCT u.module) DESC, n.name LIMIT 15""",
    "Longest functions without a docstring": """
        SELECT d.name, (d.last - d.first + 1) || ' lines', m.path || ':' || d.first FROM definitions d JOIN modules m
        ON m.id = d.module WHERE d.kind = 'function' AND d.doc = '' ORDER BY d.last - d.first DESC, d.name LIMIT 15""",
    "Longest docstrings": """
        SELECT d.name, length(d.doc) || ' characters', m.path || ':' || d.first FROM definitions d JOIN modules m
        ON m.id = d.module ORDER BY length(d.doc) DESC, d.name LIMIT 15""",
    "Method names that most classes share": """
        SELECT substr(name, length(rtrim(name, replace(name, '.', ''))) + 1) AS short, count(*) || ' times', ''
        FROM definitions WHERE kind = 'function' GROUP BY short ORDER BY count(*) DESC, short LIMIT 15""",
}

WORD = re.compile(r"\w+|[^\w\s]")
SHINGLE = 4  # tokens
SEEDS = [Random(seed).getrandbits(32) for seed in range(48)]
BAND = 3  # hashes that must all agree for two functions to be compared
SMALLEST = 60  # tokens: shorter functions are alike by nature
ALIKE = 0.6


def ask(database: sqlite3.Connection, engine: str, query: str) -> tuple[int, list[dict[str, Any]]]:
    """The number of entries that answer `query`, and the best of them."""
    words = [word.lower() for word in re.findall(r"\w+", query) if word != "OR"]
    if engine == "plain":
        pattern, joint = "(texts.name || texts.doc || texts.body) LIKE ?", " OR " if " OR " in query else " AND "
        where, values = joint.join([pattern] * len(words)) + " ORDER BY texts.rowid", [f"%{word}%" for word in words]
    else:
        where, values = ORDERS[engine], [query]
    statement = f"""
        SELECT d.name, d.kind, m.name, d.first, d.doc, d.body FROM texts JOIN definitions d ON d.id = texts.rowid
        JOIN modules m ON m.id = d.module WHERE {where}"""
    rows = database.execute(statement, values).fetchall()
    hits = []
    for name, kind, module, first, doc, body in rows[:8]:
        lines = [line.strip() for line in f"{doc}\n{body}".splitlines()]
        best = max(lines, key=lambda line: sum(word in line.lower() for word in words))
        hits.append({"name": name, "kind": kind, "module": module, "line": first, "excerpt": best[:160]})
    return len(rows), hits


def shingles(body: str) -> set[int]:
    """Hashes of every run of tokens of a function, its name apart."""
    tokens = WORD.findall(body)[2:]
    if len(tokens) < SMALLEST:
        return set()
    return {zlib.crc32(" ".join(tokens[at : at + SHINGLE]).encode()) for at in range(len(tokens) - SHINGLE + 1)}


def near_copies(database: sqlite3.Connection) -> list[dict[str, Any]]:
    """Pairs of functions that share most of their shingles, by minhash and then exactly."""
    rows = database.execute(
        """SELECT d.id, d.name, m.name, d.first, d.last, d.body FROM definitions d JOIN modules m ON m.id = d.module
        WHERE d.kind = 'function' ORDER BY d.id"""
    ).fetchall()
    sets: dict[int, set[int]] = {}
    buckets: dict[tuple[int, ...], list[int]] = defaultdict(list)
    for number, row in enumerate(rows, start=1):
        found = shingles(row[5])
        if found:
            sets[number - 1] = found
            smallest = [min(map(seed.__xor__, found)) for seed in SEEDS]
            for band in range(0, len(SEEDS), BAND):
                key = (band, *smallest[band : band + BAND])
                buckets[key].append(number - 1)
        if number % 2000 == 0 or number == len(rows):
            print(f"search: {number:,} of {len(rows):,} functions hashed", flush=True)

    candidates = {pair for bucket in buckets.values() for pair in combinations(bucket, 2)}
    print(f"search: {len(candidates):,} candidate pairs to compare", flush=True)
    pairs = []
    for left, right in sorted(candidates):
        a, b = rows[left], rows[right]
        inside = a[2] == b[2] and (a[3] <= b[3] <= a[4])  # a function and one that is nested in it
        share = len(sets[left] & sets[right]) / len(sets[left] | sets[right])
        if share >= ALIKE and not inside:
            sides = [{"name": row[1], "module": row[2], "line": row[3], "body": row[5]} for row in (a, b)]
            pairs.append({"alike": round(share, 4), "tokens": len(sets[left]), "sides": sides})
    return sorted(pairs, key=lambda pair: (-pair["alike"], -pair["tokens"], pair["sides"][0]["name"]))


def main() -> int:
    database = sqlite3.connect(WORK / "index.db")
    (engine,) = database.execute("SELECT value FROM settings WHERE name = 'engine'").fetchone()
    answers = []
    for question, query in QUESTIONS.items():
        count, hits = ask(database, engine, query)
        answers.append({"question": question, "query": query, "count": count, "hits": hits})
        print(f"search: {count:>5} entries  {question}", flush=True)
    facts = {}
    for title, statement in FACTS.items():
        facts[title] = database.execute(statement).fetchall()
        print(f"search: {title}: {facts[title][0][0]}", flush=True)
    pairs = near_copies(database)
    print(f"search: {len(pairs):,} pairs of near copies", flush=True)
    database.close()
    result = {"engine": engine, "answers": answers, "facts": facts, "pairs": pairs}
    (WORK / "results.json").write_text(
        json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n"
    )
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
