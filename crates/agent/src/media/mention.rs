//! Media in the text of a message, where tools and models without eyes find them.

use super::MediaFile;

/// `text` with the tag of each of `files` on a line of its own below it, unless it is there already.
pub fn mention<'a>(text: &str, files: impl IntoIterator<Item = &'a MediaFile>) -> String {
    let mut text = text.to_owned();
    for file in files {
        let tag = file.tag();
        if !text.contains(&tag) {
            append(&mut text, &tag);
        }
    }
    text
}

/// Adds a line.
pub(super) fn append(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_file_is_named_once() {
        let file = |name: &str, content_type: &str| MediaFile {
            reference: String::new(),
            path: format!("/m/{name}").into(),
            file_name: name.into(),
            content_type: content_type.into(),
            size_bytes: 0,
            sha256: String::new(),
        };
        let files = [
            file("a.png", "image/png"),
            file("b.ogg", "audio/ogg"),
            file("c.mp4", "video/mp4"),
            file("d", "text/plain"),
            file("a.png", "image/png"),
        ];
        assert_eq!(mention("", &files), "[image:/m/a.png]\n[audio:/m/b.ogg]\n[video:/m/c.mp4]\n[file:/m/d]");
        let there = "see [file:/m/d]\n[image:/m/a.png] there";
        assert_eq!(mention(there, &files), format!("{there}\n[audio:/m/b.ogg]\n[video:/m/c.mp4]"));
        assert_eq!(mention("x", &[]), "x");
    }
}
