import type { exact as english } from "./exact-en.ts";

/** 原样显示外来文本时的文字。 */
export const exact: typeof english = {
  hidden: (code, times) => (times === 1 ? code : `${code} × ${times.toLocaleString("zh-CN")}`),
  spaces: (n) => `${n.toLocaleString("zh-CN")} 个空格`,
  lines: (n) => `${n.toLocaleString("zh-CN")} 个空行`,
  note: (n, code) => `${n.toLocaleString("zh-CN")} 个隐藏字符以代码显示（如 ${code}）。不显示代码时，这段内容看起来可能完全不同。`,
  below: (n) => `下方还有 ${n.toLocaleString("zh-CN")} 行：全部显示`,
};
