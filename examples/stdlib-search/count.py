"""Step 2: tokenise and parse every module; count tokens, names, imports and each function's complexity."""

from __future__ import annotations

import ast
import json
import keyword
import math
import token
import tokenize
import warnings
from collections import Counter
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

WORK = Path("build/stdlib-search")
SOURCES = WORK / "sources"

FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
SCOPES = (*FUNCTIONS, ast.ClassDef)
BLOCKS = (ast.stmt, ast.ExceptHandler, ast.match_case)
BRANCHES = (ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.Assert, ast.comprehension)
LAYOUT = {token.ENCODING, token.ENDMARKER, token.INDENT, token.DEDENT, token.NEWLINE, token.NL}


def count_tokens(path: Path) -> tuple[Counter[str], Counter[str], Counter[str]]:
    """How often each kind of token, each name and each keyword or operator occurs."""
    kinds: Counter[str] = Counter()
    names: Counter[str] = Counter()
    operators: Counter[str] = Counter()
    with path.open("rb") as stream:
        for item in tokenize.tokenize(stream.readline):
            if item.type == token.NAME and keyword.iskeyword(item.string):
                kinds["keyword"] += 1
                operators[item.string] += 1
            elif item.type == token.NAME:
                kinds["name"] += 1
                names[item.string] += 1
            elif item.type == token.OP:
                kinds["operator"] += 1
                operators[item.string] += 1
            elif item.type not in LAYOUT:
                kinds[token.tok_name[item.type].lower()] += 1
    return kinds, names, operators


def complexity(function: ast.AST) -> int:
    """McCabe's number: the independent paths through a function, those of nested functions apart."""
    paths = 1
    waiting = list(ast.iter_child_nodes(function))
    while waiting:
        node = waiting.pop()
        if isinstance(node, SCOPES):
            continue
        if isinstance(node, BRANCHES):
            paths += 1
        elif isinstance(node, ast.BoolOp):
            paths += len(node.values) - 1
        elif isinstance(node, ast.Match):
            paths += len(node.cases) - 1
        waiting.extend(ast.iter_child_nodes(node))
    return paths


@dataclass(frozen=True)
class Function:
    name: str
    module: str
    line: int
    lines: int
    complexity: int
    arguments: int
    documented: bool
    annotated: bool


def statements(tree: ast.AST, prefix: str) -> Iterator[tuple[str, ast.AST]]:
    """Every statement below `tree` in the order of the source, with the name of the scope it opens or stands in."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, BLOCKS):
            name = f"{prefix}.{node.name}" if isinstance(node, SCOPES) else prefix
            yield name, node
            yield from statements(node, name)


def describe(function: ast.FunctionDef | ast.AsyncFunctionDef, name: str, module: str) -> Function:
    """What is worth knowing of one function."""
    arguments = [*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs]
    return Function(
        name=name,
        module=module,
        line=function.lineno,
        lines=(function.end_lineno or function.lineno) - function.lineno + 1,
        complexity=complexity(function),
        arguments=len(arguments),
        documented=ast.get_docstring(function, clean=False) is not None,
        annotated=function.returns is not None or any(item.annotation for item in arguments),
    )


def imports(nodes: list[ast.AST]) -> list[str]:
    """The top-level names of what a module imports, wherever in it."""
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.partition(".")[0])
    return sorted(found)


def volume(names: Counter[str], operators: Counter[str]) -> int:
    """Halstead's volume: tokens times the bits it takes to tell them apart."""
    vocabulary = len(names) + len(operators)
    return round((names.total() + operators.total()) * math.log2(vocabulary)) if vocabulary else 0


def ranked(counter: Counter[str], size: int) -> list[tuple[str, int]]:
    """The most frequent entries; equal counts in the order of the alphabet."""
    return sorted(counter.items(), key=lambda item: (-item[1], item[0]))[:size]


def main() -> int:
    warnings.simplefilter("ignore")
    listing = json.loads((WORK / "sources.json").read_text(encoding="utf-8"))
    kinds: Counter[str] = Counter()
    names: Counter[str] = Counter()
    imported: Counter[str] = Counter()
    spread: Counter[str] = Counter()  # in how many modules a name occurs
    modules = {}
    functions: list[Function] = []
    for number, (module, facts) in enumerate(sorted(listing["modules"].items()), start=1):
        path = SOURCES / facts["path"]
        own_kinds, own_names, own_operators = count_tokens(path)
        tree = ast.parse(path.read_bytes())
        nodes = list(statements(tree, module))
        own_functions = [describe(node, name, module) for name, node in nodes if isinstance(node, FUNCTIONS)]
        own_imports = imports([node for _, node in nodes])
        kinds += own_kinds
        names += own_names
        spread.update(own_names.keys())
        imported.update(own_imports)
        functions += own_functions
        modules[module] = {
            "lines": facts["lines"],
            "tokens": dict(own_kinds),
            "names": len(own_names),
            "volume": volume(own_names, own_operators),
            "functions": len(own_functions),
            "classes": sum(isinstance(node, ast.ClassDef) for _, node in nodes),
            "documented": ast.get_docstring(tree, clean=False) is not None,
            "imports": own_imports,
            "complexity": max((item.complexity for item in own_functions), default=0),
        }
        if number % 50 == 0 or number == len(listing["modules"]):
            print(f"count: {number} of {len(listing['modules'])} modules, {kinds.total():,} tokens", flush=True)

    functions.sort(key=lambda item: (-item.complexity, item.name, item.line))
    result = {
        "python": listing["python"],
        "totals": {
            "modules": len(modules),
            "lines": sum(facts["lines"] for facts in listing["modules"].values()),
            "functions": len(functions),
            "documented": sum(item.documented for item in functions),
            "annotated": sum(item.annotated for item in functions),
            "names": len(names),
        },
        "kinds": dict(kinds),
        "names": [[name, count, spread[name]] for name, count in ranked(names, 60)],
        "imports": ranked(imported, 30),
        "complexities": dict(Counter(str(item.complexity) for item in functions)),
        "hardest": [asdict(item) for item in functions[:40]],
        "modules": modules,
    }
    (WORK / "counts.json").write_text(
        json.dumps(result, indent=1, sort_keys=True) + "\n", encoding="utf-8", newline="\n"
    )
    print(f"count: {len(functions):,} functions, {len(names):,} different names", flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
