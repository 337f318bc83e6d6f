"""The kinds of sections of a long solution, and the words with which they begin in several languages."""

import re
from collections.abc import Mapping, Sequence
from enum import StrEnum


class SectionKind(StrEnum):
    """The purpose of the steps of a section."""

    APPROACH = "approach"
    COMPUTATION = "computation"
    CHECK = "check"
    DOUBT = "doubt"
    REPAIR = "repair"
    ANSWER = "answer"


_FREQUENT_WORDS = {
    "en": "the is of and to that we let so this it are for get have can then if by in",
    "de": "der die das und ist wir ein eine nicht den dem auf von mit sind ich es",
    "fr": "le les et est nous une des donc du pour dans je on par cela au",
    "es": "el los las es una del por con para y esto lo hay al",
}
FREQUENT: Mapping[str, frozenset[str]] = {code: frozenset(words.split()) for code, words in _FREQUENT_WORDS.items()}
"""Frequent words of a language that most others lack, by which it is recognised."""

# Words at the beginning of a step that say nothing by themselves.
_FILLERS = {
    "en": "so|okay|ok|well|right|alright|and|but|oh|ah|great|good|yes|yeah|then|now|first|next",
    "de": "also|okay|ok|gut|und|aber|oh|ah|ja|nun|so",
    "fr": "donc|bon|bien|et|mais|ok|ah|oh|oui|alors",
    "es": "bueno|bien|y|pero|ok|ah|oh|sí|si|entonces|así que",
    "zh": "好|那么|所以|但是|不过|嗯",
}
_ENGLISH_JOIN = r"(?:(?:so|okay|ok|well|right|alright|and|then|yes)\b[,.:;]* ){0,2}"
_ENGLISH_LET = (
    r"(?:let(?:'s| us| me)|i(?:'ll| will| can| could| should| might| want to| need to| have to)?"
    r"|we(?:'ll| will| can| could| should| need to| have to)?|to)"
)

# What follows the fillers, a pattern in each line. The first kind of which one matches counts.
_TURNS: Mapping[str, Sequence[tuple[SectionKind, str]]] = {
    "en": (
        (
            SectionKind.CHECK,
            r"""
            (?:wait|hmm+)[,.]* LET (?:just )?(?:re-?|double-?)?(?:check|verify)
            """,
        ),
        (
            SectionKind.REPAIR,
            r"""
            no[,.]
            actually\b
            ah,? i see\b
            (?:going|go) back to (?:fix|repair|correct)
            correct(?:ing|ion|ed)\b
            fix(?:ing)?\b
            redo(?:ing)?\b
            LET (?:now )?(?:redo|recompute|recalculate|rework|fix|correct|repair)\b
            .{0,60}\b(?:made|making|had) (?:an?|some|the) (?:\w+ )?(?:mistake|error|slip)
            .{0,30}\bmixed (?:\w+ ){1,2}up\b
            .{0,40}\b(?:my|the|our) (?:mistake|error)\b
            .{0,60}\b(?:that|this|it) (?:was|is) (?:an?|my) (?:mistake|error)
            .{0,60}\b(?:mistakenly|misread|miscalculated|miscounted|slipped|slip)\b
            .{0,60}\b(?:is|was) (?:wrong|incorrect)[.;,]\s
            the (?:correct|right|proper|corrected) (?:\w+ ){1,2}(?:is|are|should|would)\b
            .{0,40}\bshould (?:have been|be)\b.{1,60}\b(?:not|instead)\b
            """,
        ),
        (
            SectionKind.DOUBT,
            r"""
            (?:wait|however|hmm+|hm|hold on|uh|huh|oh no|strange|weird|odd)\b
            (?:that|this|it|something)(?:'s| is| seems| looks| went)? (?:a bit |rather |very )?(?:wrong|off|odd)\b
            (?:that|this|it|something)(?:'s| is| seems| looks)? (?:rather |very )?(?:strange|weird|impossible)\b
            (?:that|this|it) (?:doesn't|does not|didn't|can't|cannot) (?:look|seem|feel|be|add up|make sense)
            (?:did|have) (?:i|we) (?:mis|make|made|do|done)
            (?:uh, |hm, )?(?:is|was) (?:that|this|it) (?:really|even|actually)\b
            i(?:'m| am) not (?:so )?(?:sure|convinced|certain)
            .{0,40}\bcontradicts (?:what|the|my|our)\b
            (?:this|that|it)(?: is| looks)? (?:getting|becomes|makes) .{0,20}(?:complicated|messy|harder)
            """,
        ),
        (
            SectionKind.CHECK,
            r"""
            (?:check|verif|double-? ?check|sanity|quick (?:sanity )?check|confirm|make sure|as a check)
            test(?:ing)? (?:it|this|that)
            LET (?:just |also |now |quickly )?(?:check|verify|double-check|confirm|test|make sure|go over|re-?check)
            (?:does|do|is|are) (?:that|this|it|these|they) (?:hold|work|check|fit|make sense|consistent|satisf)
            .{0,60}\b(?:can|have to|need to|should|must) (?:now |also |then )?(?:check|verify|test)\b
            (?:plug|substitut|put)\w* .{0,30}\bback\b
            to be (?:safe|sure)\b
            looking back\b
            re-?evaluat
            """,
        ),
        (
            SectionKind.ANSWER,
            r"""
            (?:in conclusion|to conclude|putting (?:it|this|everything) (?:all )?together)
            (?:this|that|which) is (?:the|our|my) (?:final )?(?:answer|result)
            (?:the )?(?:final|overall) (?:answer|result)\b
            .{0,80}\bwrite the final answer
            (?:therefore|thus|hence)?,? ?the answer\b.{0,40}\b(?:is|must|should)\b
            """,
        ),
        (
            SectionKind.APPROACH,
            r"""
            (?:now |first |also |just )?(?:try|consider|suppose|assume)\b
            (?:let(?:'s| us| me)|(?:i|we)(?:'ll| will)?) (?:now |first |also )?(?:try|consider|suppose|assume)\b
            alternatively\b
            instead\b
            another (?:way|idea|approach|method|option|case)
            one (?:way|more|other|idea|approach|method|option)\b
            (?:an?|the) (?:second|third|different|other|alternative|new) (?:method|way|approach|idea|case)
            (?:an?|the) (?:second|third|different|other|alternative|new) (?:strategy|route)
            (?:an?|the) (?:better|cleaner|simpler) (?:method|way|approach|strategy|idea|route)
            perhaps\b
            maybe\b
            what (?:if|about)\b
            let \$?\\?\(?[a-z] ?(?:=|\\n)
            how (?:else|\w+ can|can|could|do|does|about|would|many|much)\b
            case [\divxab]
            on the other hand\b
            (?:approach|method|attempt|option|strategy|idea|plan)\b
            (?:the )?(?:first|second|third|next|other|last|remaining) (?:case|approach|way|method|part|piece|step)\b
            (?:let me|let's|let us) (?:approach|think|start|begin|restart|look at|see (?:what|if)|set|make)
            moving on\b
            are there (?:any )?other
            (?:i|we) could also\b
            """,
        ),
    ),
    "de": (
        (
            SectionKind.REPAIR,
            r"""
            nein[,.]
            tatsächlich\b
            korrektur
            richtig (?:ist|wäre|muss)
            .{0,60}\b(?:fehler gemacht|verrechnet|vertan|mein fehler)
            (?:ich|wir) (?:korrigiere|berichtige|rechne .{0,20}(?:neu|noch einmal))
            .{0,60}\b(?:war|ist) falsch[.;,]\s
            """,
        ),
        (
            SectionKind.DOUBT,
            r"""
            (?:moment|warte|halt|hm+|stopp)\b
            (?:das|etwas|hier|irgendetwas) .{0,20}(?:stimmt .{0,10}nicht|kann nicht|seltsam|komisch|falsch)
            stimmt das
            bin (?:ich )?.{0,8}nicht sicher
            """,
        ),
        (
            SectionKind.CHECK,
            r"""
            (?:probe|prüf|überprüf|kontroll|zur (?:kontrolle|sicherheit|probe)|verifi)
            (?:ich|wir|lass(?:t|en)?) .{0,12}(?:prüf|überprüf|kontrollier|test)
            (?:einsetzen|setze) .{0,30}zurück
            """,
        ),
        (
            SectionKind.APPROACH,
            r"""
            (?:alternativ|stattdessen|vielleicht|angenommen|betrachte|versuch)
            (?:sei nun|fall \d|nehmen wir an|was wäre|wie (?:kann|könnte))\b
            (?:ein|der|die) (?:ander|zweit|dritt|nächst|neu)\w* (?:weg|ansatz|idee|methode|möglichkeit|fall|teil)
            (?:ich|wir) (?:versuch|betracht|probier)
            zweiter (?:weg|ansatz)
            andere[rs]? (?:weg|ansatz|idee)
            """,
        ),
    ),
    "fr": (
        (
            SectionKind.REPAIR,
            r"""
            non[,.]
            en fait\b
            correction
            corrigeons
            je (?:corrige|recommence|refais|reprends)
            reprenons
            .{0,60}\b(?:une erreur|trompée?s?\b)
            la (?:bonne|vraie) \w+ (?:est|serait)
            """,
        ),
        (
            SectionKind.DOUBT,
            r"""
            (?:attends|attendez|attendons|hmm+|un instant|euh)\b
            (?:cela|ça|ceci|c'est|quelque chose) .{0,20}(?:bizarre|étrange|faux|impossible|cloche)
            (?:cela|ça|ceci|quelque chose) .{0,20}ne (?:va|colle) pas
            est-ce (?:bien |vraiment )
            je ne suis pas sûre?
            """,
        ),
        (
            SectionKind.CHECK,
            r"""
            (?:vérifi|contrôl|testons|pour vérifier|preuve)
            (?:je|on|nous) .{0,10}(?:vérifi|contrôl|test)
            """,
        ),
        (
            SectionKind.APPROACH,
            r"""
            (?:alternativement|sinon|peut-être|supposons|essayons|considérons|cas \d|autrement|et si|comment)\b
            une? (?:autre|second|deuxième|nouvel)\w* (?:façon|méthode|approche|idée|piste|cas|partie)
            (?:autre|deuxième|seconde) (?:méthode|approche|idée|cas)
            (?:je|on) (?:vais |va )?(?:essa|suppos|considèr)
            """,
        ),
    ),
    "es": (
        (
            SectionKind.REPAIR,
            r"""
            no[,.]
            en realidad\b
            corrección
            corrijamos
            corrijo
            .{0,60}\b(?:un error|me equivoqué|nos equivocamos)
            (?:rehago|recalculo|volvamos a calcular)
            lo correcto (?:es|sería)
            """,
        ),
        (
            SectionKind.DOUBT,
            r"""
            (?:espera|esperen|hmm+|un momento|mmm)\b
            (?:eso|esto|algo) .{0,20}(?:raro|extraño|mal\b|no (?:puede|cuadra|encaja)|imposible)
            no estoy segur
            ¿?es (?:eso|esto) (?:correcto|cierto)
            """,
        ),
        (
            SectionKind.CHECK,
            r"""
            (?:comprob|verifi|comprueb|para (?:verificar|comprobar|asegurar)|prueba:)
            (?:voy a|vamos a|podemos) .{0,10}(?:comprob|verific|revisar)
            """,
        ),
        (
            SectionKind.APPROACH,
            r"""
            (?:alternativamente|quizás?|tal vez|supongamos|probemos|intentemos|consideremos)\b
            (?:caso \d|y si|¿?cómo|en lugar de)\b
            otr[ao] (?:forma|manera|métod\w|enfoque|idea|caso|parte)
            un (?:segundo|nuevo) (?:métod\w|enfoque|intento)
            (?:intento|pruebo|supongo)\b
            """,
        ),
    ),
    "zh": (
        (
            SectionKind.REPAIR,
            r"""
            (?:不,|不对,应该|更正|纠正|修正|重新(?:计算|算|来)|我(?:刚才|前面)?(?:算|弄|搞)错|其实)
            .{0,20}(?:出错了|犯了.{0,4}错|的错误)|正确的.{0,6}(?:是|应)
            """,
        ),
        (
            SectionKind.DOUBT,
            r"""
            (?:等等|等一下|等下|且慢|奇怪|不对|这?好像不|这不(?:可能|对)|.{0,10}(?:有问题|不太对|矛盾了)|我不(?:太)?确定|是不是)
            """,
        ),
        (
            SectionKind.CHECK,
            r"""
            (?:检查|验证|验算|检验|核对|代回|再(?:检查|验证|确认)|(?:让)?我(?:们)?(?:来|再|先)?(?:检查|验证|验算|检验|确认))
            """,
        ),
        (
            SectionKind.APPROACH,
            r"""
            (?:或者|另一(?:种|个)|换(?:一)?(?:种|个)|也许|假设|设想|考虑|尝试|试试|情况|如果换|还可以|另外|(?:让)?我(?:们)?(?:来|再|先)?(?:试|考虑|换))
            """,
        ),
    ),
}

# The beginnings of any next thing, which is no turn unless the section before has some length.
_NEXT = {
    "en": r"""
        JOIN(?:now|next|first|finally|similarly|likewise)\b
        JOIN(?:let(?:'s| us| me)\b|to (?!do\b|get rid\b)\w)
        JOIN(?:for \$?\\?\(?[a-z] ?=|for (?:the|this|any)\b)
        JOINif \$?\\?\(?(?!i\b)(?:\d*[a-z]\b|[a-z]{1,3}\(|-)
        (?:i|we) (?:want|need|try|start|begin|will|could|wonder|see a|recall|have to)\b
        i (?:also )?notice
        (?:with this|what's left)\b
    """,
    "de": r"(?:nun|jetzt|als nächstes|zuerst|zunächst|schließlich|ebenso|dann|um)\b",
    "fr": r"(?:maintenant|ensuite|d'abord|enfin|de même|puis|pour)\b",
    "es": r"(?:ahora|luego|primero|después|finalmente|del mismo modo|a continuación|para)\b",
    "zh": r"(?:现在|接下来|接着|首先|然后|最后|同理|下面)",
}


def _any_line(lines: str) -> str:
    words = "|".join(line.strip() for line in lines.split("\n") if line.strip())
    return words.replace("LET", _ENGLISH_LET).replace("JOIN", _ENGLISH_JOIN)


def _fillers(language: str) -> str:
    end = r"[,.]?\s*" if language == "zh" else r"\b[,.:;]*\s+"
    return f"(?:(?:{_FILLERS[language]}){end}){{0,4}}"


BEGINNINGS: Mapping[str, Sequence[tuple[SectionKind, re.Pattern[str]]]] = {
    language: [
        *(
            (kind, re.compile(f"{_fillers(language)}(?:{_any_line(lines)})", re.IGNORECASE))
            for kind, lines in turns
        ),
        (SectionKind.COMPUTATION, re.compile(_any_line(_NEXT[language]), re.IGNORECASE)),
    ]
    for language, turns in _TURNS.items()
}
"""For each language, the kinds of sections with a pattern of their first words, in the order of trial."""
