"""JSON files of a model directory.

Every kind of defect (missing, too large, no JSON) is a `LoadError` that names the file.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gptrs.errors import LoadError
from gptrs.formats.byte_file import ByteFile
from gptrs.formats.json_text import NotTaken, decoded, parse

_MOST_JSON = 2**26  # bytes: the largest index of models has 2**24


def read_json(path: Path) -> dict[str, Any]:
    """The object in a JSON file. Raises `LoadError` naming the file."""
    try:
        file = ByteFile(path)
        if file.size > _MOST_JSON:
            raise LoadError(
                f"{path} has {file.size} bytes, expected at most {_MOST_JSON}",
                fix="download it again",
            )
        value = parse(decoded(file.read(0, file.size), file.memory))
    except FileNotFoundError:
        raise LoadError(
            f"{path} does not exist",
            fix="check the path; a model directory of Hugging Face has config.json,"
            " model.safetensors and tokenizer.json, and a download may be incomplete",
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise LoadError(f"{path} cannot be read: {error}") from None
    except LoadError:
        raise
    except NotTaken as error:
        raise LoadError(f"{path}: {error}", fix=error.fix) from None
    except (ValueError, RecursionError) as error:
        raise LoadError(f"{path} is not JSON: {error}", fix="download it again") from None
    if not isinstance(value, dict):
        raise LoadError(f"{path} holds a {type(value).__name__}, expected an object")
    return value  # pyright: ignore[reportUnknownVariableType]
