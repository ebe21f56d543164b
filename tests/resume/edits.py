"""What somebody may do to a job, its sources and its outputs between two runs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeAlias

from tests.resume.disk import File, Folder, Link
from tests.resume.drafts import LINKS
from tests.resume.recipe import Read
from tests.resume.situation import EXTRA, KINDS, MODES, READS, SOURCES, VALUES, source

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.resume.situation import Seed, Situation

__all__ = ["EDITS", "Edit", "change"]


@dataclass(frozen=True, slots=True)
class Edit:
    """One edit; the numbers choose on what and how, whatever there is by then."""

    kind: str
    which: int
    how: int
    seed: Seed


_Change: TypeAlias = "Callable[[Situation, Edit], str]"
EDITS: dict[str, _Change] = {}


def _edit(made: _Change) -> _Change:
    EDITS[made.__name__.strip("_").replace("_", "-")] = made
    return made


def change(now: Situation, edit: Edit) -> str:
    """Make an edit; what it was, in words."""
    told = EDITS[edit.kind](now, edit)
    return f"{edit.kind}: {told or 'nothing'}"


def _update(now: Situation, edit: Edit, **changes: Any) -> str:
    if not now.drafts:
        return ""
    place = edit.which % len(now.drafts)
    now.drafts[place] = replace(now.drafts[place], **changes)
    return f"{now.drafts[place].name} {changes}"


# --------------------------------------------------------------------------------------------- what a step says


@_edit
def _command(now: Situation, edit: Edit) -> str:
    return _update(now, edit, salt=edit.how % 3)


@_edit
def _remark(now: Situation, edit: Edit) -> str:
    return _update(now, edit, remark=edit.how % 3)


@_edit
def _whole_step(now: Situation, edit: Edit) -> str:
    if not now.drafts:
        return ""
    place = edit.which % len(now.drafts)
    now.drafts[place] = now.shaped(now.drafts[place], edit.seed, place)
    return now.drafts[place].name


@_edit
def _variables(now: Situation, edit: Edit) -> str:
    seed = edit.seed
    return _update(now, edit, env=dict(seed.env), pass_env=seed.pass_env, reads_variables=seed.reads_variables)


@_edit
def _job_env(now: Situation, edit: Edit) -> str:
    """Also a variable that steps set themselves."""
    return _set(now.job_env, ("STORY_J", "STORY_E")[edit.which % 2], edit.how)


@_edit
def _outside(now: Situation, edit: Edit) -> str:
    return _set(now.outside, ("STORY_P", "STORY_Q")[edit.which % 2], edit.how)


def _set(variables: dict[str, str], name: str, how: int) -> str:
    before = variables.pop(name, "unset")
    if how % 4 < 3:
        variables[name] = VALUES[how % 4]
    return f"{name}: {before!r} -> {variables.get(name, 'unset')!r}"


@_edit
def _inputs(now: Situation, edit: Edit) -> str:
    return _update(now, edit, extra=tuple(EXTRA[number % len(EXTRA)] for number in edit.seed.extra))


@_edit
def _reads(now: Situation, edit: Edit) -> str:
    reads = tuple(Read(READS[number % len(READS)], line, head == 1) for number, line, head in edit.seed.reads)
    return _update(now, edit, reads=reads)


@_edit
def _outputs(now: Situation, edit: Edit) -> str:
    return _update(
        now, edit, kind=KINDS[edit.how % len(KINDS)], count=edit.seed.count, mode=MODES[edit.seed.mode % len(MODES)]
    )


@_edit
def _wording(now: Situation, edit: Edit) -> str:
    """The same outputs in other words."""
    return _update(now, edit, wording=edit.how % 2)


@_edit
def _folder(now: Situation, edit: Edit) -> str:
    return _update(now, edit, where=[".", "src"][edit.how % 2])


@_edit
def _shell(now: Situation, edit: Edit) -> str:
    return _update(now, edit, shell=edit.seed.shell)


@_edit
def _always(now: Situation, edit: Edit) -> str:
    return _update(now, edit, always=edit.how % 2 == 1)


# --------------------------------------------------------------------------------------------- the list of steps


@_edit
def _need(now: Situation, edit: Edit) -> str:
    """Add one, or take it away."""
    if not now.drafts:
        return ""
    other = now.drafts[edit.how % len(now.drafts)]
    needs = now.drafts[edit.which % len(now.drafts)].needs
    _update(now, edit, needs=needs ^ {other.uid})
    return f"{now.drafts[edit.which % len(now.drafts)].name} and {other.name}"


@_edit
def _insert(now: Situation, edit: Edit) -> str:
    place = edit.which % (len(now.drafts) + 1)
    now.drafts.insert(place, now.drafted(edit.seed, place))
    return f"{now.drafts[place].name} at {place}"


@_edit
def _delete(now: Situation, edit: Edit) -> str:
    if len(now.drafts) < 2:
        return ""
    now.gone.append(now.drafts.pop(edit.which % len(now.drafts)))
    return now.gone[-1].name


@_edit
def _bring_back(now: Situation, edit: Edit) -> str:
    if not now.gone:
        return _delete(now, edit)
    draft = now.gone.pop(edit.which % len(now.gone))
    if draft.name in {other.name for other in now.drafts}:
        return ""
    if draft.slot in {other.slot for other in now.drafts}:
        draft = replace(draft, slot=now.free_slot())
    now.drafts.insert(edit.how % (len(now.drafts) + 1), draft)
    return draft.name


@_edit
def _rename(now: Situation, edit: Edit) -> str:
    return _update(now, edit, name=now.fresh_name())


@_edit
def _move(now: Situation, edit: Edit) -> str:
    if not now.drafts:
        return ""
    draft = now.drafts.pop(edit.which % len(now.drafts))
    place = edit.how % (len(now.drafts) + 1)
    now.drafts.insert(place, draft)
    return f"{draft.name} to {place}"


# --------------------------------------------------------------------------------------------- sources


@_edit
def _source(now: Situation, edit: Edit) -> str:
    path = SOURCES[edit.which % len(SOURCES)]
    now.put(path, source(edit.how // 3, edit.how))
    return path


@_edit
def _source_mode(now: Situation, edit: Edit) -> str:
    path = SOURCES[edit.which % len(SOURCES)]
    node = now.known.get(path)
    if not isinstance(node, File):
        return ""
    now.put(path, replace(node, mode=MODES[edit.how % len(MODES)]))
    return f"{path} {MODES[edit.how % len(MODES)]:o}"


@_edit
def _source_gone(now: Situation, edit: Edit) -> str:
    path = SOURCES[edit.which % len(SOURCES)]
    now.remove(path)
    return path


@_edit
def _link(now: Situation, edit: Edit) -> str:
    path = sorted(LINKS)[edit.which % len(LINKS)]
    now.remove(path)
    targets = ("", *LINKS[path])
    target = targets[edit.how % len(targets)]
    if target:
        now.put(path, Link(target))
    return f"{path} -> {target}"


@_edit
def _touch(now: Situation, edit: Edit) -> str:
    paths = sorted(now.known.tree())
    path = paths[edit.which % len(paths)]
    now.real.touch(path)
    return path


@_edit
def _something_else(now: Situation, edit: Edit) -> str:
    now.put("notes.txt", File(f"{edit.how}\n".encode()))
    return ""


# --------------------------------------------------------------------------------------------- outputs


def _output(now: Situation, edit: Edit) -> str:
    paths = now.outputs()
    return paths[edit.which % len(paths)] if paths else ""


@_edit
def _output_gone(now: Situation, edit: Edit) -> str:
    path = _output(now, edit)
    if path:
        now.remove(path)
    return path


@_edit
def _output_altered(now: Situation, edit: Edit) -> str:
    """Its size and its time stay."""
    path = _output(now, edit)
    node = now.known.get(path)
    if not isinstance(node, File) or not node.content:
        return ""
    place = edit.how % len(node.content)
    content = node.content[:place] + bytes([node.content[place] ^ 1]) + node.content[place + 1 :]
    now.known.put(path, replace(node, content=content))
    now.real.put_unseen(path, replace(node, content=content))
    return path


@_edit
def _output_longer(now: Situation, edit: Edit) -> str:
    path = _output(now, edit)
    node = now.known.get(path)
    if not isinstance(node, File):
        return ""
    now.put(path, replace(node, content=node.content + b"x"))
    return path


@_edit
def _output_mode(now: Situation, edit: Edit) -> str:
    path = _output(now, edit)
    node = now.known.get(path)
    if not isinstance(node, File | Folder):
        return ""
    mode = (0o755, 0o700)[edit.how % 2] if isinstance(node, Folder) else MODES[edit.how % len(MODES)]
    now.put(path, replace(node, mode=mode))
    return f"{path} {mode:o}"


@_edit
def _output_of_another_kind(now: Situation, edit: Edit) -> str:
    path = _output(now, edit)
    if path:
        now.remove(path)
        now.put(path, Link("nowhere") if edit.how % 2 else Folder())
    return path
