"""Documents about special tokens and odd whitespace, composed: every token beside every kind of whitespace."""

from __future__ import annotations

from collections.abc import Iterator

TOKENS = ("<mask>", "<s>", "</s>", "<pad>", "<unk>")

# Name and text of each kind of whitespace, and two characters that look like it and are none.
SPACES = (
    ("nothing", ""),
    ("space", " "),
    ("two spaces", "  "),
    ("tab", "\t"),
    ("newline", "\n"),
    ("carriage return and newline", "\r\n"),
    ("empty line", "\n\n"),
    ("form feed", "\f"),
    ("vertical tab", "\v"),
    ("next line", "\u0085"),
    ("no-break space", "\u00a0"),
    ("ogham space mark", "\u1680"),
    ("em space", "\u2003"),
    ("thin space", "\u2009"),
    ("line separator", "\u2028"),
    ("narrow no-break space", "\u202f"),
    ("ideographic space", "\u3000"),
    ("space and tab and no-break space", " \t\u00a0"),
    ("zero width space, which is none", "\u200b"),
    ("byte order mark, which is none", "\ufeff"),
)

# Sentences with a hole. The whitespace stands on both sides of what fills it.
FRAMES = (
    "The capital of this country is{}and has been for a hundred years.",
    "She opened the{}door and found another one behind it.",
    "Der Kapitän trägt seine{}Mütze auch im Sommer.",
    "Le chat dort sur{}la chaise, comme toujours.",
    "城里有一座{}钟楼。",
    "Поезд стоял на{}станции.",
    "for i in range({}):",
    "If it's{}, I'll wait; if it isn't,{}I won't.",
)

# Written one by one: runs, edges, neighbours, and what only looks like a special token.
SINGLES = (
    "<mask>",
    " <mask>",
    "<mask> ",
    "  <mask>  ",
    "<mask><mask><mask>",
    "<mask> <mask> <mask>",
    "<mask>  <mask>\t<mask>\n<mask>",
    "\n\n\n<mask>",
    "one <mask>two <mask> three<mask> four<mask>five",
    "A <mask> in the middle, a <mask>, and one at the end: <mask>.",
    "Words before. <mask> Words after. <mask>",
    "<s>A document that carries its own frame.</s>",
    "<s> A document that carries its own frame, with blanks. </s>",
    "<s>First.</s></s>Second.</s>",
    "<pad><pad><pad>Padded by hand.<pad><pad>",
    "<pad> <pad> <pad> padded, with blanks <pad> <pad>",
    "An <unk> word, an<unk>word, <unk>",
    "<s> <mask> </s> <mask> <pad> <mask> <unk> <mask>",
    " <s> <pad> </s> <unk> <mask>",
    "<mask></s><mask> </s> <mask>",
    "<MASK> <Mask> < mask> <mask > <mask/> </mask> <mask",
    "[MASK] [CLS] [SEP] [PAD] [UNK]",
    "<<mask>> <<s>> <</s>> <s/> <s <s>> s> </ s> <//s>",
    "<mas<mask>k> <pa<pad>d>",
    "<s>strike</s> <s>strike</s>",
    "&lt;mask&gt; and \\<mask\\>",
    "«<mask>» “<mask>” (<mask>) [<mask>] {<mask>} '<mask>' \"<mask>\"",
    "x<mask>=1; y =<mask>; z = <mask>",
    "é<mask>é é <mask> é ß<mask>ß Ⅷ<mask>Ⅷ 𐐀<mask>𐐀 ²<mask>²",
    "日本<mask>語 日本 <mask> 語 日本\u3000<mask>\u3000語",
    "👩‍👩‍👧<mask>👩‍👩‍👧 👩 <mask> 👧",
    "e\u0301<mask>\u0301 <mask>\u0301",
    "line one \nline two\t\nline three   \n   line four\n\t\tline five\n",
    "trailing blanks   ",
    "   leading blanks",
    "tabs\tbetween\twords\tand\t\ttwo\tat\tonce\t",
    "many          blanks          in          between",
    "CR LF lines\r\nas they come\r\nfrom elsewhere\r\n",
    "old Mac lines\rwith only\ra carriage return\r",
    "no\u00a0break\u00a0spaces\u202fand\u2009thin\u2009ones",
    "zero\u200bwidth\u200cjoiners\u200dand\u2060others\ufeff",
    "\ufeffa byte order mark in front",
    "soft\u00adhyphens and \u202eoverrides\u202c",
    "a NUL \x00 and a bell \x07 and an escape \x1b[0m",
    "a replacement character \ufffd and a private one \ue000",
    "Ünïcödé tw\u0069\u0308ce: naïve, nai\u0308ve",
    "it's we're I'd they'll you've I'm don't IT'S ’s",
    "1 12 123 1234 12345 1,234.5 1'000 ١٢٣ १२३ ⅫⅫ ①",
    "....!!!???---___===+++***///\\\\\\",
)


def special_token_documents() -> Iterator[tuple[str, str, str | None]]:
    """Give (language, title, text) of each document, nulls among them."""
    for number, (name, space) in enumerate(SPACES):
        for position, token in enumerate(TOKENS):
            frame = FRAMES[(number * len(TOKENS) + position) % len(FRAMES)]
            yield "mix", f"{token} between {name}", frame.replace("{}", f"{space}{token}{space}")
    for number, (name, space) in enumerate(SPACES[1:]):
        left, right = FRAMES[number % 6].split("{}")
        yield "mix", f"only before: {name}", f"{left}{space}<mask>{right}"
        yield "mix", f"nothing but: {name}", space * 3
    for number, text in enumerate(SINGLES):
        yield "mix", f"written by hand, {number}", text
        if number % 10 == 4:
            yield "mix", "null", None
        if number % 10 == 9:
            yield "mix", "empty", ""
