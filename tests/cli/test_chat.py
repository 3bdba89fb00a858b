"""``gptrs chat``: turns from a pipe, commands, JSON lines, and a terminal."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import nullcontext
from io import BytesIO, TextIOWrapper
from pathlib import Path
from time import monotonic
from typing import Any

import pytest

import gptrs
from gptrs.cli import interrupt
from gptrs.cli.chat_commands import COMMANDS
from gptrs.cli.conversation import Conversation
from gptrs.cli.turns import next_turn
from gptrs.loading.language_model import LanguageModel
from tests.support.chat_models import tiny_chat
from tests.support.cli import COMMAND, PATIENCE, Cli, in_process

Message = dict[str, Any]


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_chat(tmp_path_factory.mktemp("chat"))


@pytest.fixture(scope="module")
def model(directory: Path) -> LanguageModel:
    return gptrs.load(directory)


@pytest.fixture
def cli(
    directory: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Cli:
    """Runs ``gptrs chat`` on the tiny model, in this process; the first argument is its input."""
    run = in_process(monkeypatch, capsys, "chat", str(directory), "--max-tokens", "9")

    def call(said: str, *arguments: str) -> Any:
        monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(said.encode())))
        return run(*arguments)

    return call


def talk(model: LanguageModel, *said: str, **options: Any) -> list[Message]:
    """The messages of a conversation."""
    messages: list[Message] = []
    for text in said:
        messages.append({"role": "user", "content": text})
        messages.append(model.chat(messages, stream=False, max_tokens=9, **options).message)
    return messages


def answers(messages: list[Message]) -> str:
    texts = [message["content"] for message in messages if message["role"] == "assistant"]
    return "".join(text if text.endswith("\n") else f"{text}\n" for text in texts)


def test_turns_of_a_pipe(cli: Cli, model: LanguageModel) -> None:
    done = cli("Hello\n\nWhy?")
    assert (done.code, done.err) == (0, "")
    assert done.out == answers(talk(model, "Hello", "Why?"))


def test_one_message(cli: Cli, model: LanguageModel) -> None:
    done = cli("", "--prompt", "Hello", "--temperature", "0.9", "--seed", "3")
    assert done.out == answers(talk(model, "Hello", temperature=0.9, seed=3))


def test_a_system_prompt(cli: Cli, model: LanguageModel) -> None:
    out = answers(talk(model, "Hello", system="Be brief."))
    assert cli("Hello\n", "--system", "Be brief.").out == out
    done = cli("/system Be brief.\nHello\n/system\n/system none\n/system\n")
    assert (done.out, done.err) == (out, "Be brief.\nthere is no system prompt\n")


def test_a_draft_answers_the_same(cli: Cli, good: Path) -> None:
    flags = ["--max-tokens", "9", "--prompt", "hello"]
    assert cli("", *flags, "--draft", str(good)) == cli("", *flags)


def test_the_time_of_each_answer(cli: Cli) -> None:
    told = cli("Hello\nWhy?\n", "--stats").err.splitlines()
    assert len(told) == 2
    for line in told:
        assert re.fullmatch(
            r"\[\d+ tokens(, [\d.]+ tokens/s)?; \d+ of \d+ tokens read in [\d.]+ s;"
            r" [\d.]+ s in all\]",
            line,
        )
    read, whole = map(int, re.findall(r"(\d+) of (\d+) tokens read", told[1])[0])
    assert 0 < read < whole, "what was in the cache is not read again"


def test_messages_are_forgotten(cli: Cli, model: LanguageModel) -> None:
    one, two = answers(talk(model, "Hello")), answers(talk(model, "Hello", "Why?"))
    assert cli("Hello\n/clear\nHello\n").out == one + one
    assert cli("Hello\n/retry\nWhy?\n/undo\nWhy?\n").out == one + two + two.removeprefix(one)
    assert cli("Hello\n/undo\n/undo\n/history\n").err == ""


def test_the_history(cli: Cli, model: LanguageModel) -> None:
    said = talk(model, "Hello")
    expected = "".join(f"{message['role']}: {message['content']}\n" for message in said)
    assert cli("Hello\n/history\n").err == expected


def test_a_full_context_leaves_the_oldest_out(cli: Cli, model: LanguageModel) -> None:
    done = cli("Hello\n" * 9 + "/history\n/clear\nHello\n/tokens\n")
    assert done.code == 0
    counts = re.findall(r"the oldest (\d+) messages are left out", done.err)
    assert len(counts) >= 2
    assert counts == sorted(set(counts), key=int)
    assert done.err.count("user: Hello") == 9, "they stay in the history"
    one = talk(model, "Hello")
    assert done.out.startswith(answers(one))
    assert done.out.endswith(answers(one))


def test_how_full_the_context_is(cli: Cli) -> None:
    told = cli("Hello\n/tokens\n").err
    assert re.fullmatch(r"\d+ of 200 tokens of the context, 2 messages\n", told)


def test_saved_messages_are_loaded(cli: Cli, model: LanguageModel, tmp_path: Path) -> None:
    file = tmp_path / "talk.json"
    done = cli(f"/system Be brief.\nHello\n/save {file}\n")
    assert done.err == f"2 messages are in {file}\n"
    said = talk(model, "Hello", "Why?", system="Be brief.")
    saved = json.loads(file.read_text())
    assert (saved["system"], saved["messages"]) == ("Be brief.", said[:2])
    done = cli(f"/load {file}\nWhy?\n")
    assert done.out == answers(said[2:])
    assert done.err == f"2 messages of {file}\n"


def test_options_are_set(cli: Cli, model: LanguageModel) -> None:
    sampled = answers(talk(model, "Hello", temperature=1.5, seed=2))
    done = cli("/set temperature 1.5\n/set seed 2\n/set\nHello\n/clear\n/set temperature\nHello\n")
    assert done.out == sampled + answers(talk(model, "Hello"))
    assert done.err == "max_tokens 9\ntemperature 1.5\nseed 2\n"


def test_every_command_is_listed(cli: Cli) -> None:
    told = cli("/help\n/quit\nHello\n")
    assert told.out == ""
    assert [name for command in COMMANDS for name in command.names if name not in told.err] == []


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        ("/nothing", "there is no command /nothing"),
        ("/retry", "there is no message to answer again"),
        ("/save", "/save has no file"),
        ("/load nowhere.json", "nowhere.json does not exist"),
        ("/set heat 3", "there is no option heat"),
        ("/set temperature hot", "option temperature is 'hot'"),
        ("/think loudly", "/think is 'loudly'"),
        ("x" * 300, "expected at most 200 in all"),
    ],
)
def test_errors_end_a_script(cli: Cli, said: str, problem: str) -> None:
    done = cli(f"{said}\nHello\n")
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith("error: ")
    assert problem in done.err


def test_json_lines(cli: Cli, model: LanguageModel) -> None:
    said = talk(model, "Hello", "Why?")
    request = {"model": "x", "messages": said[:1], "max_tokens": 2}
    lines = ["Hello", said[2], said[:1], request]
    done = cli("".join(json.dumps(line) + "\n\n" for line in lines), "--json")
    found = [json.loads(line) for line in done.out.splitlines()]
    messages = [each["choices"][0]["message"] for each in found]
    assert messages[:3] == [said[1], said[3], said[1]]
    assert messages[3] == model.chat(said[:1], max_tokens=2).message
    assert found[1]["usage"]["prompt_tokens_details"]["cached_tokens"] > 0
    assert found[0]["model"] == model.place.name


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Hello", "line 2 of standard input is no JSON"),
        ("3", "line 2 of standard input is 3, expected"),
        ('{"role": "user"}', "messages[2] has no content"),
        ('{"messages": [], "x": 1}', "messages is empty"),
        ('{"messages": ["x"]}', "messages[0] is a str"),
    ],
)
def test_wrong_json_lines(cli: Cli, line: str, problem: str) -> None:
    done = cli(f'"Hello"\n{line}\n', "--json")
    assert done.code == 1
    assert problem in done.err
    assert "line 2 of standard input" in done.err


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--thinking", "loudly"], "--thinking is 'loudly'"),
        (["--temperature", "-1"], "--temperature"),
        (["--top-p", "2"], "top_p"),
        (["--model", "x"], "not both"),
    ],
    ids=str,
)
def test_wrong_usage(cli: Cli, arguments: list[str], named: str) -> None:
    done = cli("", *arguments)
    assert (done.code, done.out) == (2, "")
    assert named in done.err


def test_a_model_without_a_template_goes_on_with_the_text(
    good: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = in_process(monkeypatch, capsys, "chat", str(good), "-n", "9", "--prompt", "once")
    done = run()
    assert done.out == gptrs.load(good).generate("once", max_tokens=9) + "\n"
    assert (
        done.err
        == f"{good.name} has no chat template: it goes on with the text (template 'plain')\n"
    )
    assert run("--chat-template", "plain").err == ""


TURNS: list[tuple[list[str], list[str]]] = [
    (["one", "two"], ["one", "two"]),
    (["one\\", "two", "three"], ["one\ntwo", "three"]),
    (["one\\"], ["one"]),
    (['"""one', "", ' two"""', "three"], ["one\n\n two", "three"]),
    (['"""one"""'], ["one"]),
    (['"""', "/help", '"""'], ["/help"]),
    (['  """one', "two"], ["one\ntwo"]),
    ([], []),
]


@pytest.mark.parametrize(("lines", "turns"), TURNS, ids=str)
def test_turns_of_several_lines(lines: list[str], turns: list[str]) -> None:
    left = iter(lines)
    found: list[str] = []
    while (turn := next_turn(lambda _: next(left, None))) is not None:
        found.append(turn)
    assert found == turns


def test_ctrl_c_between_chunks_of_a_prompt(
    model: LanguageModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = model.session()
    monkeypatch.setattr(interrupt, "stoppable", lambda: nullcontext(lambda: True))
    talk = Conversation(session, options={"prefill_chunk": 4}, interactive=True)
    talk.say("Hello, how are you?")
    assert len(session.tokens) == 4, "what was read stays"
    assert talk.messages == [], "what has no answer is forgotten"


@pytest.fixture
def endless(tmp_path: Path) -> Path:
    """A model that answers for minutes."""
    made = tiny_chat(tmp_path, n_positions=20_000, n_layer=8, eos_token_id=None)
    bias = {"eos_token": None, "chat_template": "{{ messages[-1].content }}\n\n"}
    (made / "tokenizer_config.json").write_text(json.dumps(bias))
    return made


@pytest.fixture
def terminal(endless: Path) -> Iterator[tuple[subprocess.Popen[bytes], int]]:
    """``gptrs chat`` on a terminal, and the terminal."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [COMMAND, "chat", str(endless)],
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env=os.environ | {"TERM": "dumb"},
        start_new_session=True,
    )
    os.close(theirs)
    yield process, ours
    process.kill()
    process.communicate()
    os.close(ours)
    signal.signal(signal.SIGINT, before)


def read_until(terminal: int, pattern: bytes) -> bytes:
    found = b""
    until = monotonic() + PATIENCE
    while not re.search(pattern, found):
        assert select.select([terminal], [], [], until - monotonic())[0], f"stuck after {found!r}"
        try:
            found += os.read(terminal, 1 << 12)
        except OSError:  # the other side was closed
            break
    return found


def interrupted(process: subprocess.Popen[bytes], terminal: int, pattern: bytes) -> bytes:
    """What a prompt shows after Ctrl-C, which is pressed again where nothing comes: Python's
    `input` does not see a signal that arrives between its prompt and its wait for a key."""
    for _ in range(PATIENCE // 2):
        process.send_signal(signal.SIGINT)
        if select.select([terminal], [], [], 2)[0]:
            break
    return read_until(terminal, pattern)


@pytest.mark.slow
def test_ctrl_c_stops_the_answer_only(terminal: tuple[subprocess.Popen[bytes], int]) -> None:
    process, shown = terminal
    greeting = read_until(shown, b">>> ")
    assert b"/help lists the commands" in greeting
    os.write(shown, b"Hello\n")
    read_until(shown, b"Hello\r\n(.|\n){40}")
    process.send_signal(signal.SIGINT)
    stopped = read_until(shown, rb"s in all\](.|\n)*>>> ")
    assert b"tokens/s" in stopped
    assert b"Ctrl-D or /quit ends" in interrupted(process, shown, b"ends(.|\n)*>>> ")
    os.write(shown, b"/nothing\n")
    assert b"there is no command" in read_until(shown, b"fix(.|\n)*>>> ")
    os.write(shown, b"/tokens\n")
    assert b"2 messages" in read_until(shown, b"messages(.|\n)*>>> ")
    os.write(shown, b"\x04")
    read_until(shown, b"(?!)")
    assert process.wait(PATIENCE) == 0
