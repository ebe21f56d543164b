"""Makefiles as jobs: what the default target needs, one step each."""

from __future__ import annotations

import pytest

from checkpoint_action.errors import UsageError
from checkpoint_action.starting.draft import Draft, draft_text
from checkpoint_action.starting.makefiles import draft_of_makefile


def draft(text: str, path: str = "Makefile") -> Draft:
    return draft_of_makefile(text, path, "demo")


def commands(text: str, path: str = "Makefile") -> list[str]:
    return [step.run for step in draft(text, path).steps]


def test_what_the_default_target_needs_is_a_chain_of_steps() -> None:
    made = draft(
        ".PHONY: all test\nall: prog docs/x.html test\nprog: main.c\n\tcc -o prog main.c\n"
        "docs/x.html:\n\ttouch $@\ntest: prog\n\t./prog\n"
    )
    assert [(step.id, step.run, step.outputs) for step in made.steps] == [
        ("prog", "make prog", ("prog",)),
        ("docs-x.html", "make docs/x.html", ("docs/x.html",)),
        ("test", "make test", ()),
    ]


def test_a_default_target_with_a_recipe_comes_last() -> None:
    assert commands("all: a b\n\techo all\na:\n\techo\nb: ; echo\n") == ["make a", "make b", "make all"]
    assert commands("x.o: x.c x.h\n\tcc x.c\n") == ["make x.o"]


def test_variables_continuations_and_order_only_needs() -> None:
    text = "A = a b\nB := $(A) c\nD ?= d\nB += e\nall: $(B) \\\n   ${D} | f # why\na b c d e f:\n\techo $@ # x: y\n"
    assert commands(text) == ["make a", "make b", "make c", "make e", "make d", "make f"]


def test_what_only_make_can_know_is_left_out_and_named() -> None:
    text = "all: one $(wildcard *.o) $(patsubst %.c,%.o,$(SRC)) two\none two:\n\techo\n"
    assert commands(text) == ["make one", "make two"]
    assert "left out: ... ..." in draft_text(draft(text))


def test_special_targets_patterns_and_variables_of_targets_are_no_steps() -> None:
    text = (
        ".SUFFIXES:\n.SILENT: all\n%.o: %.c\n\tcc\nall: CFLAGS = -O2\nifdef X\nall: a\nelse\nall: b\nendif\n"
        "define f\nall: nonsense\nendef\na b nonsense:\n\techo\n"
    )
    assert commands(text) == ["make a", "make b"]


def test_the_goal_that_the_makefile_names_is_taken() -> None:
    assert commands(".DEFAULT_GOAL := rel\nall: x\nrel: y\nx y:\n\techo\n") == ["make y"]


def test_a_makefile_elsewhere_or_of_another_name() -> None:
    assert commands("all: a\na:\n\ttouch a\n", "sub dir/Makefile") == ["make -C 'sub dir' a"]
    assert draft("all: a\na:\n\ttouch a\n", "sub/build.mk").steps[0].run == "make -C sub -f build.mk a"
    assert draft("all: a\na:\n\ttouch a\n", "sub/build.mk").steps[0].outputs == ("sub/a",)


MANY = "all: build\nbuild: a.o\n\tcc -o app a.o\na.o: a.c\n\tcc -c a.c\ndocs:\n\tmkdocs\nship: build docs\n\t./ship\n"


def test_a_target_can_be_named() -> None:
    def goal(*goals: str) -> list[str]:
        return [step.run for step in draft_of_makefile(MANY, "Makefile", "demo", goals).steps]

    assert goal("ship") == ["make build", "make docs", "make ship"]
    assert goal("docs") == ["make docs"]
    assert goal("all", "docs", "docs") == ["make build", "make docs"]
    with pytest.raises(UsageError, match="no target 'doc'; did you mean 'docs'"):
        goal("doc")
    with pytest.raises(UsageError, match=r"no target 'x'; it has all, build, a\.o, docs, ship"):
        goal("x")


def test_targets_that_are_not_taken_are_named() -> None:
    assert "# Note: targets that are not in it: docs, ship ('init --target NAME' takes another)\n" in draft_text(
        draft(MANY)
    )
    assert "not in it" not in draft_text(draft("all: a\na:\n\techo\n"))


@pytest.mark.parametrize(
    ("recipe", "is_file"),
    [
        ("cc -o app x.c", False),
        ("npm run build", False),
        ("cc -o build x.c", True),
        ("cp x $@", True),
        ("x > build", True),
    ],
)
def test_a_target_is_a_file_where_its_recipe_makes_it(recipe: str, is_file: bool) -> None:
    """Many a Makefile does not say which of its targets are phony."""
    assert draft(f"all: build\nbuild:\n\t{recipe}\n").steps[0].outputs == (("build",) if is_file else ())


@pytest.mark.parametrize("text", ["", "X = 1\n", "%.o: %.c\n\tcc\n", ".PHONY: x\n"])
def test_a_makefile_without_a_target_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="no target"):
        draft(text)
