/** 已知原因的问题该如何处理，简体中文。 */
export const adviceZh = {
  noUrl: { cause: "这不是钩子可以访问的 URL。", fix: "请填写以 https:// 或 http:// 开头、带主机名且不含用户名和密码的 URL。" },
  port: { cause: "钩子不访问此端口：只允许 80、443 以及 1024 以上的大多数端口。", fix: "请让程序监听其他端口，并更正 URL。" },
  unresolved: { cause: "找不到 URL 中的主机：名称无法解析。", fix: "请检查拼写，并确认服务器的 DNS 能解析此名称。" },
  ssrf: { cause: "服务器不会访问此地址：它指向服务器本机或私有网络。", fix: "请改用服务器可以访问的 URL，或由操作员通过 [[agent_hooks.http.allow]] 放行。" },
  freeText: { cause: "模型返回了文字而不是决定，因此被阻止。", fix: "请检查指令：保持简短、使用祈使句，并只要求一个决定。" },
  tripped: { cause: "熔断器关闭了此钩子：它在一分钟内连续五次阻止或超时。", fix: "请先排除原因，再重置熔断器。在此之前，匹配的调用按“熔断期间”的设置处理。" },
  edition: { cause: "standard 版不运行命令。", fix: "请使用 http、prompt 或 script，或者改用 lite 版。" },
  cap: { cause: "本轮内调用模型的次数已达到钩子的上限。", fix: "请提高“每轮调用次数”，或收紧匹配规则。" },
  budget: { cause: "租户本月的 token 预算已用完。", fix: "请所有者在“健康”页或用 pintle budget set 提高预算，或等到下个月。" },
  required: { cause: "记录必须包含事件、处理器和范围。", fix: "请三项都填写：handler_type、event 和 scope。" },
  notJson: { cause: "返回的内容不是 JSON，这样的回答会放行。", fix: "请确认 URL 正确，而不是登录页面。启用“严格应答”后，这种情况将视为故障。" },
  late: { cause: "没有及时收到回答。", fix: "请查明变慢的原因，或提高时限（最多 10 秒）。" },
};
