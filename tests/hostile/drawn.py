"""What is drawn: good files by their grammar, and one or two things in them bent."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from hypothesis import strategies as st

from tests.hostile.toml_text import Raw, toml

INTEGERS = (
    0, 1, -1, 2, 3, 7, 255, 4096, 10**6, 2**31 - 1, 2**31, 2**32, 2**40, 2**53, 2**62, 2**63 - 1,
    2**63, 2**64, -(2**63), 10**400,
)  # fmt: skip
TEXTS = (
    "", " ", ".", "..", "../../x", "/etc/passwd", "/dev/zero", "a/b/c", "a\nb", "\x1b[2J", "a\0b",
    "\u202eabc", "ü☃", "x" * 5000, "-rf", "--help", "nan", "</script>", "<!--<script>", "%s%n",
    "{}", "{a}", "[red]x", "ssh://h#mtd5", "sequental", "this.x:y", "$(id)", "mtd", "ubifs",
)  # fmt: skip
RAW = ("nan", "-nan", "inf", "-inf", "1e400", "1979-05-27T07:32:00Z", "0x7fffffffffffffff", "''")
NESTED = ("[" * 30 + "]" * 30, "[" * 3000 + "]" * 3000, "{a=" * 400 + "1" + "}" * 400, "9" * 5000)

integers = st.sampled_from(INTEGERS) | st.integers(-(2**70), 2**70)
texts = st.sampled_from(TEXTS) | st.text(max_size=12)
small_lists = st.lists(integers | texts, max_size=4)
values: st.SearchStrategy[Any] = st.one_of(
    integers, integers, texts, st.booleans(), st.floats(), small_lists,
    st.dictionaries(st.sampled_from(("a", "valid", "mean", "name", "seed")), integers, max_size=2),
    st.sampled_from(RAW).map(Raw), st.sampled_from(NESTED).map(Raw),
)  # fmt: skip

Place = tuple[str | int, ...]


def places(given: Any, at: Place = ()) -> Iterator[Place]:
    """Every place below a value."""
    if isinstance(given, Mapping):
        for key, value in given.items():
            yield (*at, key)
            yield from places(value, (*at, key))
    elif isinstance(given, list):
        for number, value in enumerate(given):
            yield (*at, number)
            yield from places(value, (*at, number))


def changed(given: Any, place: Place, change: Any) -> Any:
    """A copy in which `change` has had what was at a place; it gives None to take it away."""
    name, *rest = place
    copy: Any = dict(given) if isinstance(given, Mapping) else list(given)
    new = changed(given[name], tuple(rest), change) if rest else change(given[name])
    if new is None:
        del copy[name]
    else:
        copy[name] = new
    return copy


@st.composite
def bent(draw: st.DrawFn, good: Mapping[str, Any]) -> dict[str, Any]:
    """A good file's values with one to three things in them changed."""
    found: Any = dict(good)
    for _ in range(draw(st.sampled_from((1, 1, 1, 2, 3)))):
        place = draw(st.sampled_from(list(places(found))))
        way = draw(st.sampled_from(("value", "value", "value", "alike", "away", "list", "more")))
        if way == "value":
            new = draw(values)
            found = changed(found, place, lambda _, new=new: new)
        elif way == "alike":
            number, text = draw(integers), draw(texts)
            found = changed(found, place, lambda old, n=number, t=text: _alike(old, n, t))
        elif way == "away":
            found = changed(found, place, lambda _: None)
        elif way == "list":
            found = changed(found, place, lambda old: [old, old])
        else:
            key, new = draw(texts), draw(values)
            found = changed(found, place, lambda old, k=key, n=new: _with(old, k, n))
    return dict(found)


def _alike(old: Any, number: int, text: str) -> Any:
    if isinstance(old, list):
        return [_alike(each, number, text) for each in old]
    return text if isinstance(old, str) else number


def _with(old: Any, key: str, new: Any) -> Any:
    return {**old, key: new} if isinstance(old, Mapping) else old


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """Bytes as they are, mostly; or cut, changed, repeated, or of another encoding."""
    way = draw(
        st.sampled_from(("", "", "", "", "cut", "byte", "nul", "crlf", "bom", "utf16", "twice"))
    )
    at = draw(st.integers(0, max(0, len(data) - 1)))
    return {
        "": data,
        "cut": data[:at],
        "byte": data[:at] + bytes([draw(st.integers(0, 255))]) + data[at + 1 :],
        "nul": data[:at] + b"\0" + data[at:],
        "crlf": data.replace(b"\n", b"\r\n"),
        "bom": b"\xef\xbb\xbf" + data,
        "utf16": data.decode("utf-8", "replace").encode("utf-16"),
        "twice": data + data,
    }[way]


@st.composite
def bent_toml(draw: st.DrawFn, good: Mapping[str, Any]) -> bytes:
    """A TOML file of bent values, its bytes perhaps damaged."""
    text = toml(draw(bent(good)))
    return draw(damaged(text.encode("utf-8", "surrogatepass")))


@st.composite
def bent_lines(draw: st.DrawFn, lines: Sequence[str], words: Sequence[str]) -> bytes:
    """Lines of words, some of them replaced by others', moved, repeated or taken away."""
    found = list(lines)
    for _ in range(draw(st.integers(1, 3))):
        if not found:
            break
        at = draw(st.integers(0, len(found) - 1))
        parts = found[at].split(" ")
        way = draw(st.sampled_from(("word", "word", "word", "away", "again", "end")))
        if way == "word":
            number = draw(st.integers(0, len(parts) - 1))
            parts[number] = draw(st.sampled_from(words) | integers.map(str) | texts)
            found[at] = " ".join(parts)
        elif way == "away":
            del found[at]
        elif way == "again":
            found.insert(draw(st.integers(0, len(found))), found[at])
        else:
            found.append(found[at])
    text = "\n".join([*found, ""])
    return draw(damaged(text.encode("utf-8", "surrogatepass")))
