/** What people call a browser, of what it says of itself: `Firefox`, `Linux`. Empty where that is not known. Pure. */
export function device(agent: string): { readonly browser: string; readonly system: string } {
  // What an engine says first it says of those that it resembles.
  const browsers: readonly (readonly [RegExp, string])[] = [
    [/\bEdg(e|A|iOS)?\//, "Edge"],
    [/\bOPR\//, "Opera"],
    [/\b(Firefox|FxiOS)\//, "Firefox"],
    [/\b(HeadlessChrome|Chrome|CriOS)\//, "Chrome"],
    [/\bVersion\/.*Safari\//, "Safari"],
    [/\bcurl\//, "curl"],
  ];
  const systems: readonly (readonly [RegExp, string])[] = [
    [/\bAndroid\b/, "Android"],
    [/\biPhone\b/, "iPhone"],
    [/\biPad\b/, "iPad"],
    [/\bWindows\b/, "Windows"],
    [/\bMac OS X\b/, "macOS"],
    [/\bCrOS\b/, "ChromeOS"],
    [/\bLinux\b/, "Linux"],
  ];
  const first = (of: readonly (readonly [RegExp, string])[]): string => of.find(([pattern]) => pattern.test(agent))?.[1] ?? "";
  return { browser: first(browsers), system: first(systems) };
}
