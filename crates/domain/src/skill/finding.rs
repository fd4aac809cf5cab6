//! What is wrong with a skill, where, and what it costs.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Something to know; nothing is lost.
    Notice,
    /// It is in force, and probably not as it was meant.
    Warning,
    /// Something is not in force because of it.
    Error,
}

impl Severity {
    /// The word in listings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Notice => "notice",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// The code of a finding: its letter says what it is about, `S` a skill, `F` a manifest, `E` an entry that is skipped,
/// `W` one that is kept, `M` the `SKILL.md`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum FindingCode {
    /// The name of an enabled skill is not one plain path component.
    S1,
    /// An enabled skill does not exist.
    S2,
    /// A skill is listed twice.
    S3,
    /// There are texts without a manifest.
    F1,
    /// The manifest cannot be read.
    F2,
    /// It is not UTF-8 or not JSON.
    F3,
    /// It is not an object with an array of hooks.
    F4,
    /// It is in the event-keyed form of other agents.
    F5,
    /// It has an unknown key.
    F7,
    /// It has too many entries.
    F8,
    /// A key stands twice in an object.
    F9,
    /// An entry is not an object.
    E1,
    /// It lacks fields.
    E2,
    /// A field has the wrong type.
    E3,
    /// Its name is none.
    E4,
    /// Its name is taken.
    E5,
    /// There is no such timing.
    E6,
    /// There is no such role.
    E7,
    /// Its text is refused.
    E8,
    /// Its tool filter is none.
    E9,
    /// A tool filter stands where it does not count.
    W1,
    /// It is empty.
    W2,
    /// It is null.
    W3,
    /// An entry has an unknown key.
    W4,
    /// Another enabled skill has a hook of the same name.
    W5,
    /// A persistent text goes in again and again.
    W6,
    /// A persistent text of the planning call stays in the loop.
    W7,
    /// The text is long.
    W8,
    /// A tool filter names no known tool.
    W9,
    /// The text never goes in, in the flow of this agent.
    W10,
    /// The text holds what a reader does not see, or a mark of the host.
    W11,
    /// The `SKILL.md` cannot be read.
    M1,
    /// Its front matter cannot be read.
    M2,
    /// It has no description: the model is not told of it.
    M3,
    /// It calls itself otherwise than its folder.
    M4,
}

impl FindingCode {
    /// The severity of a finding with this code.
    pub fn severity(self) -> Severity {
        match self {
            Self::F5 | Self::M3 | Self::M4 => Severity::Notice,
            Self::S2
            | Self::S3
            | Self::F1
            | Self::F7
            | Self::W1
            | Self::W2
            | Self::W3
            | Self::W4
            | Self::W5
            | Self::W6
            | Self::W7
            | Self::W8
            | Self::W9
            | Self::W10
            | Self::W11
            | Self::M1
            | Self::M2 => Severity::Warning,
            Self::S1
            | Self::F2
            | Self::F3
            | Self::F4
            | Self::F8
            | Self::F9
            | Self::E1
            | Self::E2
            | Self::E3
            | Self::E4
            | Self::E5
            | Self::E6
            | Self::E7
            | Self::E8
            | Self::E9 => Severity::Error,
        }
    }
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// Why a file of a skill is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileRefusal {
    /// Its name is none that a file may have here.
    Name,
    /// It is not there.
    Missing,
    /// It is a folder, a pipe, a device or a socket.
    NotRegular,
    /// It leads out of the folder of its skill.
    Outside,
    /// It is too large.
    TooLarge,
    /// It is not valid UTF-8.
    NotUtf8,
    /// It holds a zero byte.
    Nul,
    /// Nothing but blanks stands in it.
    EmptyText,
    /// The system does not let it be read.
    Unreadable,
    /// It is the host's own, under another name.
    Protected,
    /// It is not what somebody accepted.
    NotAccepted,
}

impl FileRefusal {
    /// The word in findings.
    pub fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Missing => "missing",
            Self::NotRegular => "not_regular",
            Self::Outside => "outside",
            Self::TooLarge => "too_large",
            Self::NotUtf8 => "not_utf8",
            Self::Nul => "nul",
            Self::EmptyText => "empty_text",
            Self::Unreadable => "unreadable",
            Self::Protected => "protected",
            Self::NotAccepted => "not_accepted",
        }
    }

    /// The refusal in a sentence that begins with the name of the file.
    pub fn said(self) -> &'static str {
        match self {
            Self::Name => "is not a name that a file may have here",
            Self::Missing => "is not there",
            Self::NotRegular => "is not a regular file",
            Self::Outside => "leads out of the folder of its skill",
            Self::TooLarge => "is too large",
            Self::NotUtf8 => "is not valid UTF-8",
            Self::Nul => "holds a zero byte",
            Self::EmptyText => "holds no text",
            Self::Unreadable => "cannot be read",
            Self::Protected => "is protected: it is one of Pintle's own files",
            Self::NotAccepted => "is not as it was accepted with `pintle trust`",
        }
    }
}

/// One thing that is wrong with a skill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// The code of the finding.
    pub code: FindingCode,
    /// The severity of the finding.
    pub severity: Severity,
    /// The skill, as the configuration names it.
    pub skill: String,
    /// The file that it is about; none if it is about the skill.
    pub file: Option<PathBuf>,
    /// Its line, from 1; none if it is about the whole file.
    pub line: Option<usize>,
    /// The column in characters, from 1.
    pub column: Option<usize>,
    /// Where in the manifest, as a JSON pointer; empty for all of it.
    pub path: String,
    /// The text that was expected.
    pub expected: Option<String>,
    /// The text that stands there; of a text that is refused, why.
    pub got: Option<String>,
    /// The name that was probably meant.
    pub nearest: Option<String>,
    /// The whole in words.
    pub message: String,
}

impl Finding {
    /// Something about the whole skill called `skill`.
    pub fn new(code: FindingCode, skill: &str, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: code.severity(),
            skill: skill.to_owned(),
            file: None,
            line: None,
            column: None,
            path: String::new(),
            expected: None,
            got: None,
            nearest: None,
            message: message.into(),
        }
    }

    /// This finding, about `file`.
    #[must_use]
    pub fn of(mut self, file: impl Into<PathBuf>) -> Self {
        self.file = Some(file.into());
        self
    }

    /// This finding, at a line and a column.
    #[must_use]
    pub fn at(mut self, (line, column): (usize, usize)) -> Self {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }

    /// This finding, with the text that was expected and the text that stands there.
    #[must_use]
    pub fn instead(mut self, expected: impl Into<String>, got: impl Into<String>) -> Self {
        (self.expected, self.got) = (Some(expected.into()), Some(got.into()));
        self
    }

    /// The message, with the name that was probably meant.
    pub fn said(&self) -> String {
        match &self.nearest {
            Some(nearest) => format!("{}; did you mean `{nearest}`?", self.message),
            None => self.message.clone(),
        }
    }
}

/// `FILE:LINE:COLUMN: error E6: message`.
impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{}:", file.display())?,
            None => write!(f, "skill `{}`:", self.skill)?,
        }
        if let (Some(line), Some(column)) = (self.line, self.column) {
            write!(f, "{line}:{column}:")?;
        }
        write!(f, " {} {}: {}", self.severity.word(), self.code, self.said())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_says_where_how_bad_and_what_was_meant() {
        let plain = Finding::new(FindingCode::S2, "alpha", "there is no such skill");
        assert_eq!(plain.to_string(), "skill `alpha`: warning S2: there is no such skill");
        let mut placed =
            Finding::new(FindingCode::E6, "alpha", "there is no timing `befor_planning`").of("a/hooks.json");
        placed = placed.at((3, 7)).instead("a timing", "befor_planning");
        placed.nearest = Some("before_planning".into());
        assert_eq!(
            placed.to_string(),
            "a/hooks.json:3:7: error E6: there is no timing `befor_planning`; did you mean `before_planning`?"
        );
        assert_eq!(
            serde_json::to_string(&placed).unwrap(),
            r#"{"code":"E6","severity":"error","skill":"alpha","file":"a/hooks.json","line":3,"column":7,"path":"","expected":"a timing","got":"befor_planning","nearest":"before_planning","message":"there is no timing `befor_planning`"}"#
        );
    }

    #[test]
    fn what_is_lost_is_an_error_and_what_is_kept_is_not() {
        assert!(Severity::Error > Severity::Warning && Severity::Warning > Severity::Notice);
        assert_eq!(
            [FindingCode::E8, FindingCode::W8, FindingCode::F5].map(|code| code.severity().word()),
            ["error", "warning", "notice"]
        );
        let word = crate::json::to_value(FileRefusal::NotUtf8).unwrap();
        assert_eq!(word, FileRefusal::NotUtf8.word());
    }
}
