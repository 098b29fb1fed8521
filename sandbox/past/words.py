"""The words that fill the slots of the talk, by language, and of what never settles the labelled
questions: `settled` customers and purposes are nobody's of the scenes."""

Lists = dict[str, tuple[str, ...]]

_CUSTOMERS = {
    "en": ("Harbor Foods", "Northwind", "Boulanger Frères", "Fjordline", "Atlas Clinics"),
    "zh": ("昆仑物流", "海棠酒店", "蓝鲸教育"),
}
_OTHER_CUSTOMERS = {
    "en": (
        *("Brightwater", "Oakfield Schools", "Kestrel Air", "Lumen Optics", "Delta Dairy"),
        *("Sorrento Travel", "Granite Bank", "Maple Homes", "Pinecrest", "Vista Hotels"),
    ),
    "zh": (
        *("青禾农业", "远航船务", "星河影城", "东湖医院", "锦程旅行"),
        *("云杉家居", "白鹭口腔", "鼎盛建材", "南风服饰", "溪山书店"),
    ),
}
_SHARED: Lists = {
    "tool": ("Grafana", "Notion", "Linear", "Sentry", "Airbyte", "Retool", "Metabase", "Postman"),
    "branch": ("main", "develop", "release", "fix-login", "report-export", "new-menu"),
    "time": ("9:30", "10:00", "11:15", "14:00", "15:30", "16:45", "18:00"),
}
WORDS: dict[str, Lists] = {
    "en": {
        **_SHARED,
        "day": ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday"),
        "dish": (
            "noodles",
            "the Thai place",
            "dumplings",
            "salad",
            "pizza",
            "the canteen",
            "ramen",
        ),
        "show": ("The Long Tide", "Three Kitchens", "Night Shift", "The Cartographer"),
        "product": ("the dashboard", "the planner", "the importer", "the API", "the portal"),
        "purpose": ("surveys", "the wiki", "load tests", "translations", "error reports"),
        "cause": (
            *("a full queue", "a wrong DNS entry", "an expired key", "a slow query"),
            *("a bad deploy of the portal", "a broken switch", "a limit of the mail provider"),
        ),
        "thing": ("two chairs", "a whiteboard", "the test phones", "headsets", "a second screen"),
        "place": ("our big room", "their office", "the Grand Hotel", "the library", "a boat"),
    },
    "zh": {
        **_SHARED,
        "day": ("周一", "周二", "周三", "周四", "周五"),
        "dish": ("兰州拉面", "黄焖鸡", "食堂", "麻辣烫", "轻食", "饺子", "盖浇饭"),
        "show": ("《长河》", "《三餐》", "《夜班》", "《测绘员》"),
        "product": ("看板", "排班", "导入工具", "接口", "门户"),
        "purpose": ("问卷", "知识库", "压测", "翻译", "错误上报"),
        "cause": (
            "队列满了",
            "DNS 配错了",
            "密钥过期",
            "有个慢查询",
            "门户发版有问题",
            "交换机坏了",
        ),
        "thing": ("两把椅子", "白板", "测试手机", "耳机", "副屏"),
        "place": ("大会议室", "他们公司", "君悦酒店", "图书馆", "江边的茶馆"),
    },
}
FILES = (
    *("budget.xlsx", "minutes.docx", "screens.pdf", "contract-said.docx", "numbers.csv"),
    *("会议纪要.docx", "报价.xlsx", "合同扫描件.pdf", "测试报告.pdf", "排班表.xlsx"),
)


def customers(language: str, *, settled: bool) -> tuple[str, ...]:
    """Whom the talk may name; where something is settled, nobody of the scenes."""
    others = _OTHER_CUSTOMERS[language]
    return others if settled else (*_CUSTOMERS[language], *others)


def money(language: str, thousands: int) -> str:
    """An amount as it is written."""
    return f"{thousands} 万" if language == "zh" else f"{thousands},000"
