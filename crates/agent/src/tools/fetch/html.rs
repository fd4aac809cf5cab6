//! HTML, reduced to what one would read: no layout, no scripts, one blank line between blocks.

/// Elements whose content nobody reads.
const UNREAD: [&str; 9] = ["script", "style", "noscript", "template", "svg", "iframe", "object", "head", "textarea"];

/// Elements that stand on lines of their own.
const BLOCKS: [&str; 36] = [
    "address",
    "article",
    "aside",
    "blockquote",
    "body",
    "br",
    "caption",
    "dd",
    "details",
    "div",
    "dl",
    "dt",
    "figcaption",
    "figure",
    "footer",
    "form",
    "h1",
    "h2",
    "h3",
    "h4",
    "h5",
    "h6",
    "header",
    "hr",
    "li",
    "main",
    "nav",
    "ol",
    "option",
    "p",
    "pre",
    "section",
    "summary",
    "table",
    "tr",
    "ul",
];

/// The named characters that appear in real pages; the others stay as they are written.
const NAMED: [(&str, char); 24] = [
    ("amp", '&'),
    ("lt", '<'),
    ("gt", '>'),
    ("quot", '"'),
    ("apos", '\''),
    ("nbsp", ' '),
    ("copy", '\u{a9}'),
    ("reg", '\u{ae}'),
    ("trade", '\u{2122}'),
    ("hellip", '\u{2026}'),
    ("mdash", '\u{2014}'),
    ("ndash", '\u{2013}'),
    ("lsquo", '\u{2018}'),
    ("rsquo", '\u{2019}'),
    ("ldquo", '\u{201c}'),
    ("rdquo", '\u{201d}'),
    ("laquo", '\u{ab}'),
    ("raquo", '\u{bb}'),
    ("bull", '\u{2022}'),
    ("middot", '\u{b7}'),
    ("times", '\u{d7}'),
    ("euro", '\u{20ac}'),
    ("deg", '\u{b0}'),
    ("sect", '\u{a7}'),
];

/// The longest name of a character that is looked for.
const MAX_NAME: usize = 10;

/// The text of a page. Total: any input gives some text.
pub(super) fn readable(html: &str) -> String {
    let mut page = Page::default();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        page.text(&rest[..start]);
        rest = &rest[start..];
        rest = match Tag::read(rest) {
            Some((tag, after)) => page.tag(&tag, after),
            None => {
                // A lone `<` is a character like any other.
                page.text("<");
                &rest[1..]
            }
        };
    }
    page.text(rest);
    page.finish()
}

/// A tag, comment or declaration.
struct Tag {
    /// Lower case; empty for comments and declarations.
    name: String,
    closing: bool,
}

impl Tag {
    /// Reads the tag at the start of `html`, which begins with `<`.
    fn read(html: &str) -> Option<(Self, &str)> {
        let nameless = Self { name: String::new(), closing: false };
        if let Some(comment) = html.strip_prefix("<!--") {
            return Some((nameless, comment.split_once("-->").map_or("", |(_, after)| after)));
        }
        if html.starts_with("<!") || html.starts_with("<?") {
            return Some((nameless, html.split_once('>').map_or("", |(_, after)| after)));
        }
        let inner = &html[1..];
        let closing = inner.starts_with('/');
        let inner = inner.strip_prefix('/').unwrap_or(inner);
        if !inner.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return None;
        }
        let end = inner.find(|c: char| c.is_whitespace() || c == '>' || c == '/').unwrap_or(inner.len());
        let tag = Self { name: inner[..end].to_ascii_lowercase(), closing };
        Some((tag, after_attributes(&inner[end..])))
    }
}

/// The text after the `>` that is not within quotes.
fn after_attributes(attributes: &str) -> &str {
    let mut quote = None;
    for (at, c) in attributes.char_indices() {
        match quote {
            Some(open) if c == open => quote = None,
            Some(_) => {}
            None if c == '"' || c == '\'' => quote = Some(c),
            None if c == '>' => return &attributes[at + 1..],
            None => {}
        }
    }
    ""
}

#[derive(Default)]
struct Page {
    out: String,
    preformatted: usize,
}

impl Page {
    /// Takes in a tag; returns where to go on.
    fn tag<'a>(&mut self, tag: &Tag, after: &'a str) -> &'a str {
        let name = tag.name.as_str();
        if BLOCKS.contains(&name) {
            self.line_end();
            let paragraph = name.starts_with('h') || matches!(name, "p" | "pre" | "table" | "ul" | "ol" | "blockquote");
            if paragraph && !self.out.is_empty() && !self.out.ends_with("\n\n") {
                self.out.push('\n');
            }
        }
        match (name, tag.closing) {
            ("pre", false) => self.preformatted += 1,
            ("pre", true) => self.preformatted = self.preformatted.saturating_sub(1),
            ("li", false) => self.out.push_str("- "),
            ("h1" | "h2" | "h3" | "h4" | "h5" | "h6", false) => self.out.push_str("# "),
            ("td" | "th", true) => self.out.push_str(" | "),
            _ => {}
        }
        if !tag.closing && UNREAD.contains(&name) { after_element(name, after) } else { after }
    }

    fn text(&mut self, raw: &str) {
        let text = decode(raw);
        if self.preformatted > 0 {
            self.out.push_str(&text);
            return;
        }
        for c in text.chars() {
            if !c.is_whitespace() {
                self.out.push(c);
            } else if !self.out.is_empty() && !self.out.ends_with([' ', '\n']) {
                self.out.push(' ');
            }
        }
    }

    fn line_end(&mut self) {
        let kept = self.out.trim_end_matches(' ').len();
        self.out.truncate(kept);
        if !self.out.is_empty() && !self.out.ends_with('\n') {
            self.out.push('\n');
        }
    }

    fn finish(self) -> String {
        self.out.trim().to_owned()
    }
}

/// The text after the end of the element `name`; nothing if it never ends.
fn after_element<'a>(name: &str, html: &'a str) -> &'a str {
    let mut rest = html;
    while let Some(at) = rest.find("</") {
        let inner = &rest[at + 2..];
        let named = inner.get(..name.len()).is_some_and(|found| found.eq_ignore_ascii_case(name));
        if named && !inner[name.len()..].starts_with(|c: char| c.is_ascii_alphanumeric()) {
            return inner.split_once('>').map_or("", |(_, after)| after);
        }
        rest = inner;
    }
    ""
}

/// Text with `&…;` replaced.
fn decode(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('&') {
        out.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        let end = rest.bytes().take(MAX_NAME + 1).position(|byte| byte == b';');
        match end.and_then(|end| Some((character(&rest[..end])?, end))) {
            Some((c, end)) => {
                out.push(c);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

fn character(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return NAMED.iter().find(|(known, _)| *known == name).map(|(_, c)| *c);
    };
    let code = match number.strip_prefix(['x', 'X']) {
        Some(hex) => u32::from_str_radix(hex, 16),
        None => number.parse(),
    };
    char::from_u32(code.ok()?).filter(|c| *c != '\0')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_becomes_its_text() {
        let html = r#"<!DOCTYPE html><html><head><title>T</title><style>b{}</style></head>
            <body class="a>b"><h1>Title &amp; more</h1><p>One <b>bold</b>
            word.<br>Next&nbsp;line &#8364;&#x20AC; &unknown; a<b<!-- hidden <p>x</p> --></p>
            <ul><li>a</li><li>b</li></ul><script>if (a </b) {"</p>"}</script >
            <table><tr><td>1</td><td>2</td></tr></table><pre>  x
  y</pre></body></html>"#;
        let text = readable(html);
        let expected = "# Title & more\n\nOne bold word.\nNext line \u{20ac}\u{20ac} &unknown; a";
        assert!(text.starts_with(expected), "{text}");
        assert!(!text.contains("hidden") && !text.contains("if (a"), "{text}");
    }

    #[test]
    fn lists_tables_and_preformatted_text_keep_their_lines() {
        let text =
            readable("<ul><li>a</li><li>b</li></ul><table><tr><td>1<td>2</td></tr></table><pre>  x\n    y</pre>z");
        assert_eq!(text, "- a\n- b\n\n12 |\n\n  x\n    y\n\nz");
    }

    #[test]
    fn any_input_gives_some_text() {
        for (html, text) in [
            ("", ""),
            ("plain", "plain"),
            ("1 < 2 > 0", "1 < 2 > 0"),
            ("a<", "a<"),
            ("a</", "a</"),
            ("a<b", "a"),
            ("a<!--", "a"),
            ("a<script>b", "a"),
            ("<SCRIPT>b</ScRiPt>c", "c"),
            ("<script>b</scripty></script>c", "c"),
            ("<p title=\"</p>", ""),
            ("&#0;&#xD800;&#99999999999;&;&", "&#0;&#xD800;&#99999999999;&;&"),
            ("</pre></pre>x", "x"),
            ("<style>\u{20ac}</\u{20ac}</style>\u{20ac}", "\u{20ac}"),
        ] {
            assert_eq!(readable(html), text, "{html}");
        }
    }
}
