-- Purpose: whether one text tells what another said, seen by the words that everyday talk does not have.

-- Words that people share without having them from each other: English as recall cuts it into tokens.
create or replace function bot_private.everyday_words() returns text[]
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select bot_private.asking_words() || bot_private.recall_tokens(
    'able above accept access account across act action active actually add address after afternoon again
     against ago agree agreed ahead all allow almost alone along already also always am among amount another
     answer answered answering any anything anyway anywhere apart app appear apply appreciate approve area
     around arrange arrive article ask asked asking attach attached attachment attend available away back bad
     based basic be because become before begin behind being believe below best better between big bit block
     board book both bottom break brief bring budget build business busy but button buy call called calendar
     came card care careful carry case catch cause certain certainly chance change changed channel chat check
     checked choice choose clear clearly click client close closed code colleague collect come comes comment
     common company compare complete completed concern confirm confirmed consider contact contain content
     continue copy correct cost could count couple course cover create created current currently customer cut
     daily data date day days deadline deal decide decided decision default delay delete deliver delivery
     department depend describe design detail details develop did different difficult direct discuss discussed
     discussion document documents does doing done door down draft drop due during each earlier early easy edit
     effect either else email empty end enough ensure enter entire error even evening event ever every
     everybody everyone everything exact exactly example except excuse exist expect explain extra fact fail
     fair fall family far fast feel few field figure file files fill final finally find fine finish finished
     first fit fix fixed folder follow followed following forget forgot form format former forward forwarded
     found four free friday from front full further future game gave general get gets getting give given gives
     go goes going gone good got great group guess guy guys half hand happen happy hard hear heard heavy help
     helpful here high hold home hope hour hours house however idea image important improve include includes
     including information inside instead interest into invite involve issue issues item items job join just
     keep keeps kept key kind know known large last late later latest latter lead learn least leave left less
     let level life light like likely line link list listed listen little live load local long longer look
     looks lost lot love low lunch made mail main make makes making manage manager many mark matter mean means
     meant meet meeting meetings member members mention mentioned message messages middle might mind minute
     minutes miss missing model moment monday money month months more morning most move moved much must name
     named names near nearly need needed needs never next nice night nobody none noon normal note noted notes
     nothing notice now number numbers object offer office often okay old once one only open opened opens option
     order organize original other others otherwise our out outside over overall own page paper part
     particular pass past pay people per perfect perhaps person pick picture piece place plan planned planning
     plans play please point possible post prefer prepare present pretty previous price private probably problem
     problems process product progress project projects proper propose provide public put question questions
     quick quickly quite quote quoted rather reach read ready real really reason receive received recent
     recently record regard related release remain remember remind reminder remove repeat reply report request
     require required respond response rest result results return review right room rule run running safe said
     same saturday save saved saw say says schedule scheduled search second section see seem seems seen select
     send sending sense sent separate serious set several shall share shared short should show showed shown
     shows side sign similar simple simply since single sit six size small solution solve some something
     sometimes somewhere soon sorry sort sound source space speak special specific spend stage stand start
     started state status stay step still stop store story subject success such suggest summary sunday support
     suppose sure system table take taken takes talk talked task tasks team teams tell test text than thank
     thanks that then there therefore these thing things think third those though thought thread three through
     throughout thursday tickets time times title today together told tomorrow tonight too took tool top topic
     total toward track tried trouble true try trying tuesday turn twice two type under understand unless until
     unable update updated updates upon use used useful user users uses using usual usually value various
     version very via view visit wait waiting walk want wanted wants was watch way ways wednesday week weekend
     weekly weeks welcome well went were what whatever when whenever where whether while white who whole whose
     why wide will wish with within without wonder word words work worked working works world worry would write
     writing written wrong wrote year years yes yesterday yet you young your yours
     am pm noon midnight mon tue tues wed thu thur thurs fri sat sun ok okay hmm oh ah um btw fyi asap etc eg ie
     bot everybody everyone nobody somebody someone anybody anyone regards dear cheers congratulations
     zero one two three four five six seven eight nine ten first
     second third fourth fifth percent number numbers
     up off out new id tho pls dont im isnt maybe haha lol mr mrs ms dr log paid lower round head win bag box cup chair
     seat desk window floor phone print photo label tag letter sentence translate english german french spanish
     kid parent children mum dad dog train park hotel trip travel shop ship holiday school rain sleep clean water
     coffee breakfast food eat drink red blue green brown black white yellow dark cold warm kg km ml mg mm euro
     dollar pay pack swap wash cook green warm hat bed road street city country weather
     didn don doesn isn wasn aren weren couldn wouldn shouldn won hasn haven hadn can cannot ll ve re')
$$;

-- The same for Chinese, which no space divides, the longest first.
create or replace function bot_private.everyday_chinese() returns text[]
language sql immutable parallel safe security invoker
return regexp_split_to_array('一般来说 不好意思 也就是说 产品经理 什么时候 以下内容 具体来说 内容如下 可不可以 总的来说
     换句话说 电子邮件 目前为止 需要注意 上个月 下个月 不客气 不用谢 为什么 二维码 人民币 会议室
     供应商 停车场 出租车 到目前 办公室 半小时 参与者 发布会 可以的 合同书 同意了 好不好 完成了
     实习生 对不对 对不起 工作日 工程师 已完成 建议您 志愿者 怎么办 您可以 感谢您 收到了 数据库
     明白了 星期一 星期三 星期二 星期五 星期六 星期四 星期天 星期日 是不是 有没有 服务器 未完成
     未提及 机器人 没关系 没问题 知道了 礼拜一 礼拜五 礼拜天 联系人 能不能 行不行 要不要 设计师
     请注意 谢谢你 负责人 辛苦了 这个月 进行中 通过了 采购单 一下 一个 一些 一共 一半 一句 一定
     一年 一样 一楼 一段 一点 一直 一般 一行 一起 一边 一遍 三个 三楼 上传 上午 上周 上月
     上次 上班 上线 上述 上面 下列 下午 下周 下月 下次 下班 下线 下载 下雨 下雪 下面 不会
     不同 不用 不能 不行 不要 不过 与会 世界 业主 业务 东西 两个 严重 中午 中心 中秋 中间
     为了 主任 主动 主持 主管 主要 主题 举办 举行 之内 之前 之后 之间 习惯 事情 事项 二楼
     于是 互相 交流 交给 产品 人事 人们 人员 人均 人数 什么 今后 今天 今年 今日 今早 今晚
     介绍 从来 仓库 仔细 他们 付款 代号 代码 以上 以下 以为 以内 以前 以及 以后 以外 仲裁
     价格 价钱 任何 任务 休假 休息 优先 会后 会议 估计 但是 位置 作为 你好 使用 例会 例如
     供应 便宜 保存 保持 信息 修改 值班 做好 停车 傍晚 儿童 先生 免费 全部 公司 公斤 公里
     共享 共同 关于 关注 关系 关闭 其中 其他 其余 其实 其次 具体 内容 内部 再次 再者 再见
     决定 准备 准时 凌晨 几个 几号 几天 几次 几点 出去 出发 出差 出来 出现 分享 分别 分钟
     列表 刚刚 刚才 删除 利用 别人 到底 到时 到达 制定 刻钟 前台 前天 前端 前面 办公 办法
     功能 加上 加入 加班 助理 努力 劳动 包裹 包间 医生 午餐 午饭 半夜 协助 协调 单号 单独
     占用 卡片 历史 压力 原因 原来 去年 参会 参加 参考 及时 反馈 发布 发现 发生 发票 发给
     发言 发起 发送 取消 变化 口令 句话 另外 只是 只有 只要 召开 可以 可是 可能 右边 号码
     各位 合作 合同 合唱 合计 合适 同事 同学 同意 同时 同样 同步 名单 名字 名称 后天 后来
     后端 后面 否则 告知 告诉 周一 周三 周二 周五 周会 周六 周四 周围 周报 周日 周末 咖啡
     哪个 售后 商务 喜欢 器材 回去 回复 回来 回答 因为 因此 团建 困难 国庆 图片 地址 地方
     地点 块钱 培训 基本 堵车 增加 处理 备注 复制 外面 多久 多大 多少 多谢 多长 够了 大家
     大小 大楼 大概 大约 大致 天气 太多 奶奶 奶茶 她们 好像 好吃 好的 如下 如何 如果 如此
     如需 存在 季度 学习 孩子 它们 安全 安排 完全 完成 实在 实现 实际 审批 客户 客服 室友
     家里 家长 密码 对于 导演 将来 小心 小时 小组 尚未 就是 居然 展示 工作 工具 左右 左边
     差旅 已经 已读 市场 师傅 希望 带来 帮助 帮忙 平均 平时 年会 年假 年底 年度 并且 广场
     应该 店长 度过 延后 延期 建议 开会 开发 开始 开放 当前 当时 当然 录音 影响 待会 待办
     待定 很多 律师 得到 必须 忘记 快乐 快点 快递 忽然 怎么 怎样 总之 总共 总是 总结 恢复
     您好 情况 想法 愉快 意义 意思 意见 感觉 感谢 愿意 成为 成功 成本 我们 我的 或者 截止
     截至 房间 所以 所有 手机 打印 打开 打算 批准 找到 技术 投影 投诉 护士 报价 报名 报告
     报销 抱歉 抵达 拒绝 招标 指出 按照 按钮 损耗 换成 据说 排班 排练 接下 接受 接口 推到
     推荐 推迟 提交 提供 提出 提到 提前 提及 提早 提示 提醒 提高 摄影 摘要 支付 支持 收入
     收到 收款 改为 改到 改变 改成 放假 放在 放心 故障 效果 教室 教练 教育 数字 数学 数据
     数量 整个 整理 文件 文字 文案 文档 文章 新人 新的 方便 方式 方案 方法 方面 旁边 旅游
     日历 日子 日报 日期 日程 早上 早会 早点 早退 早餐 时候 时间 明天 明年 明日 明早 明晚
     明白 星期 春节 昨天 昨日 昨晚 是否 是的 晚上 晚会 晚点 晚饭 普通 晴天 暂无 暂时 暗号
     更加 更多 更改 更新 最低 最后 最多 最好 最少 最新 最近 最高 月份 月初 月底 月报 有些
     有人 有关 有效 有时 有点 有用 朋友 服务 期间 期限 未来 未读 本周 本月 本来 机会 机票
     材料 条件 来自 标题 样品 样子 根据 检修 检查 楼上 楼下 楼层 概要 模型 次数 欢迎 正在
     正好 正常 步骤 段落 每个 每人 每周 每天 每年 每月 每次 比赛 比较 民宿 汉字 沟通 没事
     没有 法务 法律 注意 活动 流程 测试 海报 消息 消防 添加 清单 清晨 清楚 温度 满意 火车
     火锅 点半 点钟 然后 然而 照片 版本 物业 特别 环境 现在 现场 班长 理解 甚至 生日 生气
     生活 用户 申请 电影 电梯 电池 电脑 电话 病假 登记 白色 盖章 目前 目标 直接 相信 相关
     看到 看看 看见 真的 知道 石头 研发 研究 确定 确实 确认 礼拜 社区 祝您 离开 秘书 程序
     稍后 稍等 空调 空间 立刻 笔记 第一 第二 策划 签字 简单 管理 精神 系统 索引 红色 约定
     组织 组长 终于 经常 经理 经过 经验 结束 结果 结论 给你 给我 绝对 统计 继续 绿色 编号
     编辑 网上 网络 美元 群主 群组 群聊 群里 老婆 老师 老板 考虑 而且 而是 聊天 联系 肯定
     能力 能够 自动 自己 至于 至少 航班 节日 英文 英语 范围 蓝色 虽然 行动 行政 行程 表情
     表格 表示 要是 要求 见面 规则 规定 视频 解决 解释 计划 订单 订餐 认为 认识 讨论 让他
     让我 记住 记录 讲话 设置 设计 评审 评论 话题 询问 语言 语音 说明 说法 请假 请教 请求
     请问 调整 谈谈 谢谢 负责 财务 账号 质检 质量 费用 资料 赶紧 起来 超时 超过 路上 身体
     车间 转账 软件 迅速 过去 过来 过程 运营 运行 运费 返回 还是 还有 还要 这个 这么 这些
     这周 这样 这边 这里 进入 进度 进来 进行 迟到 退出 退款 适合 选择 通知 通过 遇到 遗憾
     那么 那些 那样 那边 那里 邮件 邮箱 部分 部署 部门 酒店 采购 里面 重新 重点 重要 金额
     钥匙 链接 销售 错误 长短 门口 门禁 问题 队长 阿姨 附件 附近 随便 随时 隔壁 难道 集合
     需求 需要 非常 面试 面谈 音乐 项目 顺便 顺利 顺序 预定 预算 预计 领导 题目 颜色 飞书
     食堂 餐厅 首先 马上 驳回 高低 高铁 鸡蛋 黄色 黑色 个 件 份 位 周 天 日 早 晚 条 次', '\s+');

-- A text without them, as they are no word of another: so no pair of characters holds half of one.
create or replace function bot_private.without_everyday_chinese(p_text text) returns text
language plpgsql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
declare
  v_words constant text[] := bot_private.everyday_chinese();
  v_text text := p_text;
  v_word text;
begin
  foreach v_word in array v_words loop
    v_text := replace(v_text, v_word, ' ');
  end loop;
  return translate(v_text, '个位份些次', '     ');
end
$$;

-- Chinese characters of grammar, and of what everybody does: a pair with one of them names nothing.
create or replace function bot_private.grammar_signs() returns text
language sql immutable parallel safe security invoker
return '[是在有要会已把被请去来想说用定改换到作为就也和都很不没这那给跟让向从对与及或但而且则若着再又还只才更最太可能该需须必看听问找等叫谈写送拿带交取挺够真呀哦嗯哈发做过得地吃喝买卖走坐住回起出进]';

-- Tags that mention somebody, and ids of Feishu: nearly every card has some, and they tell nothing.
create or replace function bot_private.without_ids(p_text text) returns text
language sql immutable parallel safe security invoker
return regexp_replace(p_text, '<at [^<>]*>|</at>|\y(ou|on|oc|om|omt|cli)_[0-9A-Za-z_-]+', ' ', 'g');

-- The numbers that a text writes in groups, such as 1,250,000 or 138 0013 8000, each in one piece.
create or replace function bot_private.whole_numbers(p_text text) returns text
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select string_agg(regexp_replace(g[1], '[^0-9]', '', 'g'), ' ')
  from regexp_matches(
    p_text, '(?:^|[^0-9+])(?:\+[0-9]{1,3}[ -]|\+)?'
      || '([0-9]{1,3}(?:[,，''’][0-9]{3})+|[0-9]{2,4}(?:[ -][0-9]{3,4}){2,3})(?![0-9])', 'g') g
$$;

-- The terms by which it is seen that one text tells another, as recall cuts them: without ids, everyday words,
-- and in Chinese pairs that hold a word of grammar. 14th is 14.
create or replace function bot_private.telling_terms(p_text text) returns setof text
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select distinct regexp_replace(w, '^([0-9]+)(st|nd|rd|th)$', '\1')
  from bot_private.without_ids(p_text) s, concat_ws(' ', bot_private.whole_numbers(s), s) t, unnest(bot_private.recall_tokens(
    case when octet_length(t) = length(t) then t
    else bot_private.without_everyday_chinese(normalize(left(t, 30000), nfkc)) end)) w
  where w ~ '..' and w !~ bot_private.grammar_signs()
    and w <> all (bot_private.everyday_words())
$$;

-- The words of a JSON value, without the escapes that would stick to them.
create or replace function bot_private.words_in(p_value jsonb) returns text
language sql immutable parallel safe security invoker
return regexp_replace(p_value::text, '\\(u[0-9a-f]{4}|.)', ' ', 'g');

-- What was given to a call and what it gave; the names of tools and of their parameters are ours.
create or replace function bot_private.words_of_call(p_call jsonb) returns text
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select concat_ws(e'\n', bot_private.words_in(p_call -> 'result'), string_agg(bot_private.words_in(e.value), e'\n'))
  from jsonb_each(case when jsonb_typeof(p_call -> 'arguments') = 'object' then p_call -> 'arguments' end) e
$$;

-- Dates, years, small numbers and the ends of round ones stand in many texts; any other term stands for what it is from.
create or replace function bot_private.is_distinctive(p_term text) returns boolean
language sql immutable parallel safe security invoker
return p_term !~ ('^([0-9]{1,2}|0+|20[23][0-9]|[第零一二三四五六七八九十两百千万][楼层遍句段行场班组次年期件条张章节批米名]'
  || '|[零一二三四五六七八九十两百千万年月日号点半]+)$')
  and p_term <> all ('{januar,februar,march,april,jun,jul,june,july,august,september,october,november,december,
    jan,feb,mar,apr,aug,sep,sept,oct,nov,dec}');

-- Whether a text that uses the terms p_told tells a source that has the terms p_own: one of the distinctive
-- ones is enough; of a source without any, half of all.
create or replace function bot_private.tells(p_told text[], p_own text[]) returns boolean
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select case when exists (select from unnest(p_own) o where bot_private.is_distinctive(o))
    then exists (select from unnest(p_told) t where bot_private.is_distinctive(t))
    else cardinality(p_told) > 0 and 2 * cardinality(p_told) >= cardinality(p_own) end
$$;

-- A text as its copies are known: without ids, case, width and signs, one space around each word and each Chinese
-- character. The bot says “you” where a person says “I”.
create or replace function bot_private.plain_words(p_text text) returns text
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select ' ' || btrim(regexp_replace(regexp_replace(regexp_replace(s.words, '\yyou are\y', 'i am', 'g'),
    '\yyou\y', 'i', 'g'), '\yyour\y', 'my', 'g')) || ' '
  from (select regexp_replace(regexp_replace(
    translate(lower(normalize(bot_private.without_ids(left(p_text, 30000)), nfkc)), '您你', '我我'),
    '([\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af])', ' \1 ', 'g'),
    '[^0-9a-z\u00c0-\u02af\u0370-\u0fff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]+', ' ', 'g') as words) s
$$;

-- The sentences of these texts, as `plain_words`, without “remember that” before them: those that are long enough for a
-- copy to be no accident. Of everyday words alone there have to be more.
create or replace function bot_private.telling_phrases(p_texts text[]) returns text[]
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(
    select distinct p.words
    from unnest(p_texts) t
      cross join lateral regexp_split_to_table(
        bot_private.without_ids(left(t, 30000)), '[!?。！？；;\n]+|\.\s') s (sentence)
      cross join lateral (select regexp_replace(
        bot_private.plain_words(s.sentence),
        '^ (please )?(remember|note|keep in mind) (that )?|^ (请 |帮 我 )*(记 住 |记 一 下 |记 下 )', ' ') as words) p
    where length(p.words) - length(replace(p.words, ' ', '')) - 1 >= case when exists (
      select from bot_private.telling_terms(s.sentence) w where bot_private.is_distinctive(w)) then 3 else 4 end)
$$;

-- Of these phrases those that stand word for word in a text.
create or replace function bot_private.phrases_in(p_text text, p_phrases text[]) returns text[]
language sql immutable parallel safe security invoker set search_path = pg_catalog, pg_temp
as $$
  select array(select p from bot_private.plain_words(p_text) t, unnest(p_phrases) p where strpos(t, p) > 0)
$$;
