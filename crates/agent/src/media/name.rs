//! File names that are safe to write, to show and to type.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use super::content_type::{extension, family};

/// The longest name, in bytes: file systems take 255, and a number must still fit.
const MAX_BYTES: usize = 120;
/// The longest ending that is kept when a name is cut.
const MAX_ENDING_BYTES: usize = 16;
/// How many names are tried before a folder counts as full.
const MAX_TRIES: u32 = 10_000;

/// Names that mean devices on Windows, with any ending.
const RESERVED: [&str; 6] = ["con", "prn", "aux", "nul", "com", "lpt"];

/// A safe form of the file name `raw`; of a file of this type, if nothing is left of it.
///
/// It is one component without a dot, a dash or a blank in front, of characters that no shell, path or `[image:PATH]`
/// reads in its own way, and at most [`MAX_BYTES`] long.
pub(super) fn safe(raw: &str, content_type: &str) -> String {
    let last = raw.rsplit(['/', '\\']).next().unwrap_or_default();
    let kept: String = last.chars().map(|c| if is_plain(c) { c } else { '_' }).collect();
    let trimmed = kept.trim_start_matches(['.', '-', ' ', '_']).trim_end_matches(['.', ' ', '_']);
    if trimmed.is_empty() {
        return format!("{}.{}", family(content_type), extension(content_type));
    }
    let named = if is_reserved(trimmed) { format!("x{trimmed}") } else { trimmed.to_owned() };
    let cut = cut(&named, MAX_BYTES);
    // What was in the middle may now stand at the end.
    cut.trim_end_matches(['.', ' ', '_']).to_owned()
}

/// Whether `name` is one that [`safe`] gives.
pub(super) fn is_safe(name: &str) -> bool {
    safe(name, "") == name
}

fn is_plain(c: char) -> bool {
    // Letters of all scripts, but no marks that turn the direction of the text around.
    c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | ' ' | '(' | ')' | '+' | ',' | '@' | '=')
}

fn is_reserved(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or_default().trim_end().to_lowercase();
    let device = stem.trim_end_matches(|c: char| c.is_ascii_digit());
    stem.len() - device.len() <= 1 && RESERVED.contains(&device)
}

/// `name` in at most `max` bytes, its ending kept.
fn cut(name: &str, max: usize) -> String {
    if name.len() <= max {
        return name.to_owned();
    }
    let (stem, ending) = match name.rsplit_once('.') {
        Some((stem, ending)) if ending.len() < MAX_ENDING_BYTES => (stem, &name[stem.len()..]),
        Some(_) | None => (name, ""),
    };
    format!("{}{ending}", &stem[..stem.floor_char_boundary(max - ending.len())])
}

/// Makes a new file in `folder` under the safe name `name`, or with a number before its ending where that is taken.
pub(super) fn create_free(folder: &Path, name: &str) -> io::Result<(File, PathBuf)> {
    let (stem, ending) = name.rsplit_once('.').map_or((name, ""), |(stem, _)| (stem, &name[stem.len()..]));
    for n in 1..=MAX_TRIES {
        let path = folder.join(if n == 1 { name.to_owned() } else { format!("{stem}-{n}{ending}") });
        match File::create_new(&path) {
            Ok(file) => return Ok((file, path)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::new(io::ErrorKind::AlreadyExists, format!("{MAX_TRIES} files are called `{name}` already")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::RngSeed;

    #[test]
    fn hostile_names_become_plain_ones() {
        let long = "é".repeat(200);
        let table = [
            ("photo.png", "photo.png"),
            ("Grüße (1).pdf", "Grüße (1).pdf"),
            ("../../etc/passwd", "passwd"),
            ("..\\..\\boot.ini", "boot.ini"),
            ("/", "file.pdf"),
            ("..", "file.pdf"),
            ("", "file.pdf"),
            (" . _", "file.pdf"),
            (".bashrc", "bashrc"),
            (".about.json", "about.json"),
            ("-rf", "rf"),
            ("a\0b\nc\u{1b}[31m.txt", "a_b_c__31m.txt"),
            ("a]b[c:d*e?\"<>|`$(x);'.txt", "a_b_c_d_e_______(x)__.txt"),
            ("\u{202e}gnp.exe", "gnp.exe"),
            ("x\u{202e}gnp.exe", "x_gnp.exe"),
            ("con", "xcon"),
            ("LPT1.txt", "xLPT1.txt"),
            ("com12.txt", "com12.txt"),
            ("console", "console"),
            ("name. . .", "name"),
        ];
        for (raw, expected) in table {
            assert_eq!(safe(raw, "application/pdf"), expected, "{raw:?}");
        }
        assert_eq!(safe(&format!("{long}.jpeg"), ""), format!("{}.jpeg", "é".repeat(57)));
        assert_eq!(safe(&format!("a.{long}"), "").len(), 120);
        assert_eq!(safe("", "image/png"), "image.png");
    }

    proptest! {
        #![proptest_config(ProptestConfig {
            cases: 2_000, rng_seed: RngSeed::Fixed(0), failure_persistence: None, ..ProptestConfig::default()
        })]

        #[test]
        fn a_safe_name_is_its_own_safe_name(raw in "([a-cé./\\\\ _\\-\0]{0,140}|\\PC{0,60}|(con|nul1|LPT)[. a]{0,4})") {
            let name = safe(&raw, "image/png");
            prop_assert!(is_safe(&name), "{:?} of {:?}", name, raw);
            prop_assert!(!name.is_empty() && name.len() <= MAX_BYTES);
            prop_assert_eq!(Path::new(&name).components().count(), 1);
        }
    }
}
