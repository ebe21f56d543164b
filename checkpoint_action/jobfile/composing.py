"""A YAML text as a tree of nodes, each of which knows where it stands.

PyYAML's own tree takes five times the memory: a job of 100,000 steps is read from half a million nodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing import Literal

    import yaml

__all__ = ["Node", "compose"]

_NULL = frozenset({"", "~", "null", "Null", "NULL"})  # YAML 1.1, where nothing is quoted
_NULL_TAG = "tag:yaml.org,2002:null"
_DEEPEST = 500  # levels; libyaml itself stops at twice as many, and the Python loader never


class Node:
    """A text, a list or a mapping.

    :ivar value: the text, the nodes of a list, or the pairs of nodes of a mapping.
    :ivar line: where it begins, from 1.
    :ivar column: where it begins, from 1.
    :ivar is_null: whether nothing is written here.
    """

    __slots__ = ("column", "is_null", "kind", "line", "value")

    kind: Literal["scalar", "sequence", "mapping"]
    value: Any
    line: int
    column: int
    is_null: bool


def compose(text: str) -> Node | None:
    """The one document of a YAML text; ``None`` where it holds none.

    Tags tell nothing but whether a text is null: all that is asked of them, and soon found.

    :raises yaml.YAMLError: it is not YAML, or more than one document.
    :raises RecursionError: it is nested too deeply.
    """
    import yaml  # noqa: PLC0415  # only YAML users pay for it

    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
    try:
        loader.get_event()  # the stream begins
        first = loader.get_event()
        if isinstance(first, yaml.StreamEndEvent):
            return None
        root = _Composer(loader).tree()
        loader.get_event()  # the document ends
        after = loader.get_event()
        if not isinstance(after, yaml.StreamEndEvent):
            raise yaml.MarkedYAMLError(
                "expected a single document in the stream",
                first.start_mark,
                "but found another document",
                after.start_mark,
            )
        return root
    finally:
        loader.dispose()


class _Composer:
    """Makes nodes of what a parser tells, one level in the other without a call for each.

    :param loader: of PyYAML, at the beginning of a document.
    """

    def __init__(self, loader: Any) -> None:
        self._get = loader.get_event
        self._anchors: dict[str, tuple[Node, yaml.Mark]] = {}
        self._line = 0

    def tree(self) -> Node:
        """The root of the document, with all that is in it."""
        import yaml  # noqa: PLC0415  # loaded by then

        scalar, alias = yaml.ScalarEvent, yaml.AliasEvent
        mapping, sequence = yaml.MappingStartEvent, yaml.SequenceStartEvent
        get = self._get
        keys: dict[str, str] = {}  # the same few come again and again
        above: list[tuple[list[Any], bool, Node | None]] = []
        items: list[Any] = []  # of the list or mapping that is being read; at first the root alone
        paired, key = False, None  # whether that is a mapping, and the key that waits for its value
        while above or not items:
            event = get()
            kind = type(event)
            if kind is scalar:
                node = self._scalar(event)
                if paired and key is None:
                    node.value = keys.setdefault(node.value, node.value)
            elif kind is mapping or kind is sequence:
                node = self._node("mapping" if kind is mapping else "sequence", event)
                node.value = []
            elif kind is alias:
                node = self._anchored(event)
            else:  # the end of a list or mapping
                items, paired, key = above.pop()
                continue
            if not paired:
                items.append(node)
            elif key is None:
                key = node
            else:
                items.append((key, node))
                key = None
            if kind is mapping or kind is sequence:
                above.append((items, paired, key))
                items, paired, key = node.value, kind is mapping, None
                if len(above) > _DEEPEST:
                    raise RecursionError
        return items[0]  # type: ignore[no-any-return]  # a list of pairs it is only further down

    def _scalar(self, event: Any) -> Node:
        node = self._node("scalar", event)
        text = node.value = event.value
        if event.tag is None or event.tag == "!":
            node.is_null = text in _NULL and event.implicit[0]
        else:
            node.is_null = event.tag == _NULL_TAG
        return node

    def _node(self, kind: Literal["scalar", "sequence", "mapping"], event: Any) -> Node:
        """A node without its value, known by its anchor where it has one."""
        node = Node()
        mark = event.start_mark
        line = mark.line + 1
        if line != self._line:  # nodes in a line share its number
            self._line = line
        node.kind, node.line, node.column, node.is_null = kind, self._line, mark.column + 1, False
        if event.anchor is not None:
            self._name(event.anchor, node, mark)
        return node

    def _name(self, anchor: str, node: Node, mark: yaml.Mark) -> None:
        import yaml  # noqa: PLC0415  # loaded by then

        if anchor in self._anchors:
            first = self._anchors[anchor][1]
            raise yaml.MarkedYAMLError("found duplicate anchor; first occurrence", first, "second occurrence", mark)
        self._anchors[anchor] = node, mark

    def _anchored(self, event: Any) -> Node:
        """The node that an alias stands for; of a list or mapping, it may be in the midst of it."""
        import yaml  # noqa: PLC0415  # loaded by then

        if event.anchor not in self._anchors:
            raise yaml.MarkedYAMLError(None, None, "found undefined alias", event.start_mark)
        return self._anchors[event.anchor][0]
