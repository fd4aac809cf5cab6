//! The paths of files that a result names.

use std::collections::BTreeSet;

use super::ToolOutput;

/// Most paths of one result that are remembered: more than anybody sends.
const MAX_PATHS: usize = 64;

/// The signs that stand around a path in a text.
const AROUND: [char; 12] = ['"', '\'', '`', '<', '>', '(', ')', '[', ']', '{', '}', ','];

impl ToolOutput {
    /// The whole paths that it names, as it spells them: its artifacts, and what stands in its text for the model.
    pub fn named_paths(&self) -> BTreeSet<String> {
        let words = self.for_llm.split(|sign: char| sign.is_whitespace() || AROUND.contains(&sign));
        // `[file:PATH]` names one as well.
        let words = words.map(|word| {
            ["file:", "image:", "audio:", "video:"].iter().find_map(|tag| word.strip_prefix(tag)).unwrap_or(word)
        });
        let spelled = words.flat_map(|word| [word, word.trim_end_matches(['.', ';', ':', '!', '?'])]);
        let tags = self.artifact_tags.iter().map(String::as_str);
        let is_path = |path: &&str| path.starts_with('/') && path.len() > 1 && !path.starts_with("//");
        tags.chain(spelled).filter(is_path).take(2 * MAX_PATHS).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_paths_are_found_as_they_are_spelled() {
        let check = |text: &str, expected: &[&str]| {
            let named = ToolOutput::ok(text).named_paths();
            assert_eq!(named.iter().map(String::as_str).collect::<Vec<_>>(), expected, "{text}");
        };
        // The words of the published example.
        check(
            "Image generated, saved at /tmp/generated_image.png. Use send_file tool to send to user.",
            &["/tmp/generated_image.png", "/tmp/generated_image.png."],
        );
        check("Image loaded, path: /tmp/image.png [file:/tmp/image.png]", &["/tmp/image.png"]);
        check("see `/a/b`, (\"/c\") and '/d'", &["/a/b", "/c", "/d"]);
        check("a/b ./c ../d media://1 https://x/y // / x=/e", &[]);
        let tagged = ToolOutput { artifact_tags: vec!["/my file.txt".into(), "rel".into()], ..ToolOutput::ok("") };
        assert_eq!(tagged.named_paths(), BTreeSet::from(["/my file.txt".to_owned()]));
    }
}
