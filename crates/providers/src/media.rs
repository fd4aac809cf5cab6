//! What of a message's media a wire can carry, and the words for the rest.

use std::borrow::Cow;

use pintle_domain::message::Message;

/// One entry of `media`, as a wire form has to tell it apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium<'a> {
    /// A `data:` URL of an image.
    Image {
        /// The whole URL.
        url: &'a str,
        /// Such as `image/png`.
        content_type: &'a str,
        /// In base64.
        data: &'a str,
    },
    /// An image that the provider fetches itself.
    Remote(&'a str),
    /// A PDF file, in base64.
    Pdf(&'a str),
    /// Anything else.
    Other(&'a str),
}

impl<'a> Medium<'a> {
    /// What `entry` is for a model that sees, or for one that does not: its pages and images are then like any other
    /// file.
    pub(crate) fn of(entry: &'a str, vision: bool) -> Self {
        let inline = entry.strip_prefix("data:").and_then(|rest| rest.split_once(";base64,"));
        match inline {
            _ if !vision => Self::Other(entry),
            None if entry.starts_with("https://") || entry.starts_with("http://") => Self::Remote(entry),
            Some(("application/pdf", data)) => Self::Pdf(data),
            Some((kind, data)) if kind.starts_with("image/") => {
                let content_type = kind.split(';').next().unwrap_or(kind);
                Self::Image { url: entry, content_type, data }
            }
            Some(_) | None => Self::Other(entry),
        }
    }
}

/// Says that the medium `entry` of `message` could not be sent: the model should know rather than guess. Where the
/// text names the file of such a medium already, as in `[image:PATH]`, there is nothing to add.
pub(crate) fn unsent(entry: &str, message: &Message) -> Option<String> {
    let kind = entry.strip_prefix("data:").map_or(entry, |rest| rest.split([';', ',']).next().unwrap_or_default());
    let family = match kind.split('/').next() {
        Some(family @ ("image" | "audio" | "video")) => family,
        Some(_) | None => "file",
    };
    let named = entry.starts_with("data:") && message.content.contains(&format!("[{family}:"));
    (!named).then(|| format!("[media not sent: {kind}]"))
}

/// `text` with `notes` below it.
pub(crate) fn with_notes(text: &str, notes: Vec<String>) -> Cow<'_, str> {
    if notes.is_empty() {
        return Cow::Borrowed(text);
    }
    let lines: Vec<&str> =
        Some(text).filter(|text| !text.is_empty()).into_iter().chain(notes.iter().map(String::as_str)).collect();
    Cow::Owned(lines.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pintle_domain::message::Role;

    #[test]
    fn media_are_told_apart() {
        let png = "data:image/png;base64,AA==";
        let odd = "data:image/png;name=x;base64,AA==";
        let image = |url| Medium::Image { url, content_type: "image/png", data: "AA==" };
        assert_eq!(Medium::of(png, true), image(png));
        assert_eq!(Medium::of(odd, true), image(odd));
        assert_eq!(Medium::of("data:application/pdf;base64,AA==", true), Medium::Pdf("AA=="));
        assert_eq!(Medium::of("https://h/x.png", true), Medium::Remote("https://h/x.png"));
        for other in ["data:image/png,AA", "data:audio/ogg;base64,AA==", "media://x", "/etc/passwd", ""] {
            assert_eq!(Medium::of(other, true), Medium::Other(other));
        }
        for unseen in [png, "data:application/pdf;base64,AA==", "https://h/x.png"] {
            assert_eq!(Medium::of(unseen, false), Medium::Other(unseen));
        }
    }

    #[test]
    fn a_note_names_what_no_text_names() {
        let note = |entry: &str, text: &str| unsent(entry, &Message::text(Role::Tool, text)).unwrap_or_default();
        assert_eq!(note("data:image/png;base64,AA==", "shot"), "[media not sent: image/png]");
        assert_eq!(note("data:image/png;base64,AA==", "shot\n[image:/m/a.png]"), "");
        assert_eq!(note("data:application/pdf;base64,AA==", "[image:/m/a.png]"), "[media not sent: application/pdf]");
        assert_eq!(note("data:application/pdf;base64,AA==", "[file:/m/a.pdf]"), "");
        assert_eq!(note("media://x", "[file:/m/a.pdf]"), "[media not sent: media://x]");
    }
}
