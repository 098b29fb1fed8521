"""Which of several texts is meant by “forget …”. Pure.

Words and identifiers match whole: `alice@acme.io` is no part of `alice.smith@acme.io`. Case, width,
separators, traditional signs, spelled numbers and letter-by-letter spelling make no difference.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Literal

Match = Literal["sure", "likely", ""]

# Of text whose white space is single spaces.
_AT = re.compile(r"(?<=\w) ?(?:\(at\)|\[at\]|(?<= )at(?= )|@) ?(?=[\w-]++ ?(?:\.|dot |\[dot\]))")
_DOT = re.compile(r"(?<=\w)(?: dot | ?[\[(]dot[\])] ?)(?=\w)")
_LETTERS = re.compile(r"(?<![\w@])(?:[a-z0-9][ .\-]){2,}[a-z0-9](?![\w@])")
_DIGITS = re.compile(r"(?<![\w.])\+?\(?\d{1,5}\)?(?:[ \-]\d{2,5})+(?![\w.])")
_HAN_DIGITS = re.compile("[零〇一二三四五六七八九]{3,}")
_TOKEN = re.compile(
    r"(?P<address>(?<![\w.+\-])[\w.+\-]++@\w[\w\-]*(?:\.\w[\w\-]*)+)"
    r"|(?P<path>(?:https?://|/|[a-z]:\\|~/)[^\s,;，。；]{2,}|(?<!\w)\w++(?:[/\\]\w[\w.\-]*)+)"
    r"|(?P<han>[\u3400-\u9fff]+)|(?P<word>[^\W_]+)"
)
_STOP = frozenset(
    "a an the my your our his her their i you we me us it is are was were be been that this what"
    " which who where when how of to in on at for from with by as and or about all everything"
    " anything please said told do does did has have had s t m re ve no not now any more".split()
)
_STOP_HAN = re.compile(
    "关于|有关|所有的?|一切|全部|我们的?|我的?|你的?|您的?|他的?|她的?|那个|这个|那条|这条|的事情?|"
    "说过?的?|[的是在了吧呢啊和把请]"
)
_TRADITIONAL = str.maketrans(
    "錢號碼電話樓層會議簽機場車門鑰匙賬帳貓狗愛對產種過敏國學書記時間問題單價報銷開關門東馬鳥魚麥黃"
    "葉張陳劉楊趙吳鄭孫許鄧蕭羅韓馮蔣蘇盧賈閻鄒陸孔龍萬錶請讓說語詞譯議員廠廣應體檢測試驗銀證買賣貨"
    "運輸達邊進遠連選還這個們來兩嚴豐臨為麗舉義樂習鄉書亂爭於雲亞產親億僅從倉儀價眾優傳傷倫偉儲兒黨"
    "蘭關興養獸內岡寫軍農馮決況凍淨準減湊凱擊創別劃劑勁動務勝勞勢勳區醫華協單賣盧衛廳歷壓廈縣雙發變葉"
    "號嘆嚇呂嗎聽啟吳員園圍圖圓聖場壞塊堅壇墳墜壘壯聲處備復夠頭夾奪奮獎婦媽嬌孫學寧寶實寵審憲宮寬賓導壽"
    "將爾塵嘗堯屍層屬嶺嶼島崗幣師帳帶幫廟廣莊慶庫應廢開異棄張彌彎歸當錄彥徹徑後憶憂懷態憐總戀惡惱懸驚懼慘"
    "愛願懶戰戶撲執擴掃揚撫拋護報擬擁擇擔據擠揮損換搗擋掛攜攝擺搖攔敵數斷無舊時曠曉暫術樸機殺雜權條來楊"
    "極構槍楓櫃標棧樹樣橋檔檢樓歡歐歲殘殼毀畢氣漢湯溝沒淚澤潔灑濃濕滿濱灣災爐點煉熱煙煩燈燒愛爺牆狀猶獨獄"
    "獵獻環現瑪畫暢療瘋癢皺盞鹽監蓋盤瞞碼礦磚礎確禮禍禪離種積稱穩窮竊竄競筆築簡籃類糧緊糾紅紀約級純紙紗網"
    "線組細終結給絡絕統繼績緒續維綿綠綱縮繩織縱羅罰罷職聯聰肅腸膚腫脅腦腳臉臘艦艱藝節蘆蘇蘋範莖薦蕩榮藥萊"
    "獲營蕭薩藍蔣虛蟲蝦螞術補裝裡襲見觀規覓視覽覺觸譽計訂認討讓訓議訊記講許論設訪證評識訴診詞試詩誠話誕詢該"
    "詳語誤說請諸課誰調談謀謎謝謹譜貝負貢財責賢敗貨質販貪貧購貫貴貼貿費賀資賊賓賞賜賠賴賺賽贊贈趕趨躍踐車軌"
    "軟轉輪轟輕載較輔輛輝輸辦辭邊達遷過運還進遠違連遲適選遺鄧鄭鄰釀針釣鈉鋼鑰鉛鐵鈴錢鋪鍵銷鎖鋒錯錫鍋錄鎮鏡"
    "長門閃閉問間閒閱隊陽陰陣階際陸陳險隨隱難雲霧靜頂項順須預領頗頻題顏額顧風飛飯飲飽餐館馬駛駐駕騙騰驗魚鮮鳥"
    "鳴鴨鷹麥黃齊齒齡龍龜",
    "钱号码电话楼层会议签机场车门钥匙账账猫狗爱对产种过敏国学书记时间问题单价报销开关门东马鸟鱼麦黄"
    "叶张陈刘杨赵吴郑孙许邓萧罗韩冯蒋苏卢贾阎邹陆孔龙万表请让说语词译议员厂广应体检测试验银证买卖货"
    "运输达边进远连选还这个们来两严丰临为丽举义乐习乡书乱争于云亚产亲亿仅从仓仪价众优传伤伦伟储儿党"
    "兰关兴养兽内冈写军农冯决况冻净准减凑凯击创别划剂劲动务胜劳势勋区医华协单卖卢卫厅历压厦县双发变叶"
    "号叹吓吕吗听启吴员园围图圆圣场坏块坚坛坟坠垒壮声处备复够头夹夺奋奖妇妈娇孙学宁宝实宠审宪宫宽宾导寿"
    "将尔尘尝尧尸层属岭屿岛岗币师帐带帮庙广庄庆库应废开异弃张弥弯归当录彦彻径后忆忧怀态怜总恋恶恼悬惊惧惨"
    "爱愿懒战户扑执扩扫扬抚抛护报拟拥择担据挤挥损换捣挡挂携摄摆摇拦敌数断无旧时旷晓暂术朴机杀杂权条来杨"
    "极构枪枫柜标栈树样桥档检楼欢欧岁残壳毁毕气汉汤沟没泪泽洁洒浓湿满滨湾灾炉点炼热烟烦灯烧爱爷墙状犹独狱"
    "猎献环现玛画畅疗疯痒皱盏盐监盖盘瞒码矿砖础确礼祸禅离种积称稳穷窃窜竞笔筑简篮类粮紧纠红纪约级纯纸纱网"
    "线组细终结给络绝统继绩绪续维绵绿纲缩绳织纵罗罚罢职联聪肃肠肤肿胁脑脚脸腊舰艰艺节芦苏苹范茎荐荡荣药莱"
    "获营萧萨蓝蒋虚虫虾蚂术补装里袭见观规觅视览觉触誉计订认讨让训议讯记讲许论设访证评识诉诊词试诗诚话诞询该"
    "详语误说请诸课谁调谈谋谜谢谨谱贝负贡财责贤败货质贩贪贫购贯贵贴贸费贺资贼宾赏赐赔赖赚赛赞赠赶趋跃践车轨"
    "软转轮轰轻载较辅辆辉输办辞边达迁过运还进远违连迟适选遗邓郑邻酿针钓钠钢钥铅铁铃钱铺键销锁锋错锡锅录镇镜"
    "长门闪闭问间闲阅队阳阴阵阶际陆陈险随隐难云雾静顶项顺须预领颇频题颜额顾风飞饭饮饱餐馆马驶驻驾骗腾验鱼鲜鸟"
    "鸣鸭鹰麦黄齐齿龄龙龟",
)


def match(words: str, text: str) -> Match:
    """Whether `text` is surely meant by `words`, or perhaps: it has all of them, or half."""
    wanted = _wanted(words)
    if not wanted:
        return ""
    there = _tokens(text)
    found = wanted & there
    if any(_is_identifier(one) for one in wanted - found):
        return ""
    if found == wanted:
        return "sure"
    return "likely" if 2 * len(found) >= len(wanted) else ""


def names_something(words: str) -> bool:
    """Whether anything can be looked for by these words."""
    return bool(_wanted(words))


def _wanted(words: str) -> frozenset[str]:
    return frozenset(one for one in _tokens(_STOP_HAN.sub(" ", _folded(words))) if one not in _STOP)


def _is_identifier(token: str) -> bool:
    return any(sign in token for sign in "@/\\") or any(one.isdigit() for one in token)


def _folded(text: str) -> str:
    plain = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
    plain = plain.translate(_TRADITIONAL)
    plain = _HAN_DIGITS.sub(lambda m: m[0].translate(_NUMERALS), plain.replace("_", " "))
    plain = _LETTERS.sub(lambda m: re.sub(r"[ .\-]", "", m[0]), plain)
    plain = _DIGITS.sub(lambda m: re.sub(r"\D", "", m[0]), plain)
    return _AT.sub("@", _DOT.sub(".", plain))


_NUMERALS = str.maketrans("零〇一二三四五六七八九", "00123456789")


def _tokens(text: str) -> frozenset[str]:
    """Words without a plural, identifiers as a whole, and pairs of neighbouring Chinese signs."""
    found: set[str] = set()
    for one in _TOKEN.finditer(_folded(text)):
        if run := one["han"]:
            found |= {run[i : i + 2] for i in range(max(1, len(run) - 1))}
        elif one["word"]:
            found.add(_singular(one["word"]))
        else:
            found.add(one[0].rstrip(".,:!?)/"))
    return frozenset(found)


def _singular(word: str) -> str:
    return word[:-1] if len(word) > 3 and word.endswith("s") and not word.endswith("ss") else word
