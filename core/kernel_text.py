"""C++ text reduced to its tokens, for the keys of compiled programs.

Machine code does not depend on comments, blank lines or ``#line`` directives. Keys of compiled
programs are computed without them, so that rewording a comment invalidates no cache and no kernel
of a wheel. The compiler reads the unchanged text.
"""

from __future__ import annotations

import re
from functools import lru_cache

#: Literals and numbers come first: ``//`` within a string and the apostrophe of ``1'000`` begin
#: neither a comment nor a character.
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


@lru_cache(maxsize=64)  # a text of 50 kB takes 0.7 ms, and each solver of a kind has the same
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
    kept = _TOKEN.sub(lambda found: found["literal"] or " ", text)
    return "\n".join(line for line in map(str.rstrip, kept.split("\n")) if line)
