"""Chat templates: messages → the text that a model was trained on, by jinja2.

What comes out is what transformers' ``apply_chat_template`` gives. Templates are untrusted: they
run in a sandbox (`gptrs.text.template_sandbox`) within a budget of work, and every defect is one
error. `gptrs.formats.chat_files` finds the template of a directory.
"""

from __future__ import annotations

import traceback
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from gptrs.errors import ArgumentError, LoadError, MissingPackageError
from gptrs.extras import needed_for
from gptrs.locks import cached_property
from gptrs.text.messages import Message, checked_messages, plain, with_text

if TYPE_CHECKING:
    from jinja2 import Template

LONGEST = 2**18
"""Characters of a template; the longest of models have 2¹⁵."""
_OLDEST = (3, 1, 6)  # earlier versions of jinja2 have holes in the sandbox
_OWN_PAGE = "take the template of the model's own page, or pass another as chat_template"
# Where a continued message ends. A template that trims texts takes the space away.
_MARK = "GPTRS-CONTINUES-HERE "

PLAIN = (
    "{% for message in messages %}"
    "{% if message['role'] != 'assistant' and not loop.first %}{{ '\\n' }}{% endif %}"
    "{{ message['content'] }}"
    "{% endfor %}"
)
"""For models without a template: each answer goes on from the text before it."""
CHATML = (
    "{% for message in messages %}"
    "{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n' }}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}"
)
NAMED = {"plain": PLAIN, "chatml": CHATML}
"""Templates that can be asked for by name, with any model."""


class ChatTemplate:
    """A template, where it is from, and the special tokens that it may name (``bos_token``)."""

    def __init__(
        self, source: str, place: str, special_tokens: Mapping[str, str] | None = None
    ) -> None:
        if len(source) > LONGEST:
            raise LoadError(
                f"{place}: the template has {len(source)} characters, expected at most {LONGEST}",
                fix=_OWN_PAGE,
            )
        self.source = source
        self.place = place
        self.special_tokens = dict(special_tokens or {})
        self._made: Template | None = None

    @cached_property
    def reads_tools(self) -> bool:
        """Whether the template names ``tools``."""
        tree = self._compiled.environment.parse(self.source)
        from jinja2.meta import find_undeclared_variables  # late: optional

        return "tools" in find_undeclared_variables(tree)

    @cached_property
    def reads_parts(self) -> bool:
        """Whether the template loops over the parts of a content that is a list."""
        tree = self._compiled.environment.parse(self.source)
        from jinja2 import nodes  # late: optional

        names = {"content"}
        for given in tree.find_all(nodes.Assign):
            if isinstance(given.target, nodes.Name) and _names_content(given.node, names):
                names.add(given.target.name)
        return any(_names_content(loop.iter, names) for loop in tree.find_all(nodes.For))

    def render(
        self,
        messages: Sequence[Mapping[str, Any]],
        *,
        tools: Sequence[Mapping[str, Any]] | None = None,
        add_generation_prompt: bool = False,
        continue_final_message: bool = False,
        **variables: Any,
    ) -> str:
        """The text of ``messages``.

        ``add_generation_prompt`` appends what begins an answer; ``continue_final_message`` leaves
        the last message open. ``variables`` are for the template (``enable_thinking``). Raises
        `ArgumentError` for messages that are none or that the template refuses, and `LoadError` for
        a template that does not work.
        """
        found = checked_messages(messages)
        if not self.reads_parts:
            found = with_text(found)
        if continue_final_message:
            if add_generation_prompt:
                raise ArgumentError(
                    "add_generation_prompt and continue_final_message are True, expected one",
                    fix="the first begins an answer, the second goes on with the last message",
                )
            final = _marked(found)
            return _cut(self._run(found, tools, variables), final, self.place)
        return self._run(found, tools, variables, prompt=add_generation_prompt)

    def _run(
        self,
        messages: list[Message],
        tools: object,
        variables: Mapping[str, Any],
        *,
        prompt: bool = False,
    ) -> str:
        from gptrs.text.template_budget import budget

        given = {
            **self.special_tokens,
            "tools": plain(tools, "tools"),
            "documents": None,
            **plain(variables, "variables"),
            "messages": messages,
            "add_generation_prompt": prompt,
        }
        template = self._compiled
        try:
            with budget(_characters(given["messages"]) + _characters(given["tools"])):
                return template.render(given)
        except Exception as error:
            raise self._explained(error) from None

    @property
    def _compiled(self) -> Template:
        if self._made is None:
            self._made = self._compile()
        return self._made

    def _compile(self) -> Template:
        sandbox = _sandbox(self.place)
        from gptrs.text.template_budget import budget

        try:
            with budget():
                return sandbox.compiled(self.source)
        except Exception as error:
            raise self._explained(error) from None

    def _explained(self, error: Exception) -> Exception:
        """The one error for what jinja2 and Python raise in a template."""
        from jinja2.exceptions import TemplateSyntaxError

        from gptrs.text.template_budget import BudgetError
        from gptrs.text.template_sandbox import RefusedError

        if isinstance(error, RefusedError):
            return ArgumentError(
                f"{self.place}: the template refuses these messages: {str(error)[:300]!r}",
                fix="change the messages as it says, or pass another chat_template",
            )
        line = error.lineno if isinstance(error, TemplateSyntaxError) else None
        for frame in traceback.extract_tb(error.__traceback__):
            if frame.filename == "<template>":
                line = frame.lineno
        where = f"{self.place}: line {line} of the template" if line else f"{self.place}: it"
        if isinstance(error, BudgetError):
            return LoadError(
                f"{where} takes more time or memory than a template may", fix=_OWN_PAGE
            )
        said = str(error) or type(error).__name__
        return LoadError(
            f"{where} does not work: {said[:300]}, expected a chat template of jinja2",
            fix=f"check that each message has what the template reads, or {_OWN_PAGE}",
        )


def _sandbox(place: str) -> Any:
    with needed_for(f"the chat template of {place}"):
        import jinja2

    found = tuple(int(part) for part in jinja2.__version__.split(".")[:3] if part.isdigit())
    if found < _OLDEST:
        raise MissingPackageError(
            f"the chat template of {place} needs Jinja2 3.1.6, found {jinja2.__version__}",
            fix="pip install -U 'gptrs[text]'",
        )
    from gptrs.text.template_sandbox import Sandbox

    return Sandbox()


def _names_content(node: Any, names: set[str]) -> bool:
    """Whether an expression is ``message.content``, ``message['content']`` or one of ``names``."""
    from jinja2 import nodes

    if isinstance(node, nodes.Name):
        return node.name in names
    if isinstance(node, nodes.Getattr):
        return node.attr == "content"
    if isinstance(node, nodes.Getitem):
        return isinstance(node.arg, nodes.Const) and node.arg.value == "content"
    return False


def _marked(messages: list[Message]) -> str:
    """The text of the last message, at whose end ``messages`` then have a mark."""
    last = messages[-1] = dict(messages[-1])
    content = last.get("content")
    if isinstance(content, str):
        last["content"] = content + _MARK
        return content
    parts: list[dict[str, str]] = list(content or ())
    if not parts:
        raise ArgumentError(
            f"continue_final_message is True, and messages[{len(messages) - 1}] has no text",
            fix="let the last message begin the answer",
        )
    last["content"] = [*parts[:-1], parts[-1] | {"text": parts[-1]["text"] + _MARK}]
    return parts[-1]["text"]


def _cut(text: str, final: str, place: str) -> str:
    at = text.rfind(_MARK.strip())
    if at < 0 or final.strip() not in text:
        raise ArgumentError(
            f"continue_final_message is True, and the chat template of {place} does not show the"
            " last message as it is",
            fix="leave it out, or let a message of the assistant be the last",
        )
    whole = text.startswith(_MARK, at)
    return text[:at] if whole else text[:at].rstrip()


def _characters(value: Any) -> int:
    if isinstance(value, str):
        return len(value)
    if isinstance(value, dict):
        return sum(map(_characters, value.values()))  # pyright: ignore[reportUnknownArgumentType, reportUnknownMemberType]
    return sum(map(_characters, value)) if isinstance(value, list) else 8  # pyright: ignore[reportUnknownArgumentType]
