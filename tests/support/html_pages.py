"""HTML that tests look at: its elements, its words, and whether each element is closed."""

from __future__ import annotations

from html.parser import HTMLParser


class Page(HTMLParser):
    """The elements of ``html`` by tag, its words, and its tooltips."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self._open: list[str] = []
        self.count: dict[str, int] = {}
        self.classes: set[str] = set()
        self.titles: list[str] = []
        self.text = ""
        """Without styles."""
        self.feed(html)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._open.append(tag)
        self.count[tag] = self.count.get(tag, 0) + 1
        given = dict(attrs)
        self.classes |= {*(given.get("class") or "").split()}
        self.titles += [given["title"] or ""] if "title" in given else []

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open[-1:] != ["style"]:
            self.text += data
