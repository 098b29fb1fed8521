"""Replaces the look-alikes that fonts of PDFs give for Chinese characters and ligatures. Pure.

A font may map 人 to the radical ⼈ (U+2F08): it looks the same, and no search finds it.
"""

from __future__ import annotations

import re
import unicodedata

# Source: Unicode, EquivalentUnifiedIdeograph.txt, for what has no compatibility decomposition.
_SUPPLEMENT = dict(
    zip(
        "⺁⺄⺅⺆⺉⺊⺋⺌⺎⺏⺐⺒⺓⺔⺕⺖⺗⺘⺙⺛⺜⺝⺞⺠⺡⺢⺣⺤⺦⺧⺨⺩⺪⺫⺬⺭⺮⺯⺰⺱⺲⺶⺹⺺⺻⺼⺽⺾⺿⻀⻁⻂⻃⻄⻅⻆⻈⻉⻊⻋⻌⻍⻎⻏⻐⻑⻒⻓⻔⻕⻖⻗⻘⻙⻚⻛⻜⻝⻟⻠⻡⻢⻣⻤⻥⻦⻧⻨⻩⻪⻫⻬⻭⻮⻯⻰⻱⻲",
        "厂乙亻冂刂卜㔾小兀尣尢巳幺彑彐忄㣺扌攵旡日月歺民氵氺灬爫丬牛犭王疋目示礻竹糹纟罓罒羊耂肀聿肉臼艹艹艹虎衤覀西见角讠贝足车辶辶辶阝钅長镸长门阜阝雨青韦页风飞食飠饣首马骨鬼鱼鸟卤麦黄黾斉齐歯齿竜龙龜亀",
        strict=True,
    )
)
_LOOK_ALIKE = re.compile("[\u2e80-\u2fdf\uf900-\ufaff\ufb00-\ufb06]")


def plain_characters(text: str) -> str:
    """The text with the characters that people type."""
    return _LOOK_ALIKE.sub(_plain, text)


def _plain(match: re.Match[str]) -> str:
    return _SUPPLEMENT.get(match[0]) or unicodedata.normalize("NFKC", match[0])
