"""C++ text reduced to its tokens, for the keys of compiled programs.

Machine code does not depend on comments, blank lines or ``#line`` directives. Keys of compiled
programs are computed without them, so that rewording a comment invalidates no cache and no kernel
of a wheel. The compiler reads the unchanged text.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

#: Literals and numbers are matched first, because ``//`` within a string does not begin a comment,
#: and the apostrophe of ``1'000`` does not begin a character.
_TOKEN = re.compile(
    r"""
      (?P<literal> R"(?P<mark>[^()\\\s]{0,16})\(.*?\)(?P=mark)"
                 | "(?:\\.|[^"\\\n])*"
                 | (?<![\w'])\d(?:'?\w|\.|(?<=[eEpP])[+-])*
                 | '(?:\\.|[^'\\\n])+' )
    | (?P<comment> //(?:\\\n|[^\n])* | /\*.*?\*/ )
    | (?P<line> ^[ \t]*\#[ \t]*line\b[^\n]* )
    """,
    re.VERBOSE | re.DOTALL | re.MULTILINE,
)


#: ``_LINE`` and ``_REST`` match directives and comments in text without literals. ``_OTHER``
#: detects text that needs the tokenizer: quotation marks, block comments, continued lines, and an
#: apostrophe before a comment.
_LINE = re.compile(r"^[ \t]*#[ \t]*line\b[^\n]*", re.MULTILINE)
_REST = re.compile(r"//[^\n]*")
_OTHER = re.compile(r'"|/\*|\\\n|\'[^\n]*//')

#: The beginning of a part of a program: at each directive the compiler enters or returns to a file.
_PART = "\n#line "


def without_comments(text: str) -> str:
    r"""Return C++ text without comments, ``#line`` directives, blank lines and trailing spaces.

    Parameters
    ----------
    text : str
        Any C++ text: a header, a functor, a whole program.

    Examples
    --------
    >>> without_comments('int a;  // a count\n\n#line 7 "b.hpp"\nint b = 1; /* one */\n')
    'int a;\nint b = 1;'
    """
    # Splitting is fast: a regular expression for the directives would dominate the time of a cached
    # program.
    first, *others = text.split(_PART)
    parts = [first, *[_PART[1:] + part for part in others]]
    files = [_tokens(part + "\n") for part in parts[:-1]] + [_tokens(parts[-1])]
    if not all(file.ends for file in files):  # a comment or literal spans a directive
        return _tokens(text).text
    return "\n".join(file.text for file in files if file.text)


class _Tokens(NamedTuple):
    """Text without comments, and whether every comment and literal ends within the text."""

    text: str
    ends: bool


@lru_cache(maxsize=1024)  # a program of 50 kB takes some milliseconds, and most share their headers
def _tokens(text: str) -> _Tokens:
    plain = _LINE.sub(" ", text)
    if _OTHER.search(plain):
        return _tokens_of_any(text)
    return _Tokens(_full_lines(_REST.sub(" ", plain)), True)


def _full_lines(text: str) -> str:
    lines = map(str.rstrip, text.split("\n"))
    return "\n".join(line for line in lines if line)


def _tokens_of_any(text: str) -> _Tokens:
    """Return the same for text with any kinds of literals and comments."""
    kept, code, end = "", "", 0
    for found in _TOKEN.finditer(text):
        between, end = text[end : found.start()], found.end()
        kept += between + (found["literal"] or " ")
        code += between
    code += text[end:]
    ends = not text.endswith("\\\n") and '"' not in code and "/*" not in code
    return _Tokens(_full_lines(kept + text[end:]), ends)
