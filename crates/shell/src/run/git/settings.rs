//! Settings of `git`: some of them run something, some lead elsewhere.

use crate::read::Reading;
use crate::state::{Field, State};

impl Reading<'_> {
    /// `-c name=value` and `git config name value`.
    pub(super) fn git_setting(&mut self, field: &Field, state: &State) {
        let (name, value) = field.text.split_once('=').unwrap_or((&field.text, ""));
        let name = name.to_ascii_lowercase();
        let (section, last) = (name.split('.').next().unwrap_or_default(), name.rsplit('.').next().unwrap_or_default());
        let value = Field { text: value.to_owned(), certainty: field.certainty };
        if section == "remote" && (last == "mirror" || (last == "push" && value.text.contains('+'))) {
            self.unknown(format!("`{name}` changes what `git push` publishes"));
        }
        let runs = matches!(section, "pager" | "alias")
            || matches!(
                last,
                "pager"
                    | "editor"
                    | "sshcommand"
                    | "external"
                    | "askpass"
                    | "helper"
                    | "command"
                    | "textconv"
                    | "driver"
                    | "clean"
                    | "smudge"
                    | "process"
                    | "program"
                    | "cmd"
                    | "uploadpack"
                    | "receivepack"
                    | "gitproxy"
                    | "fsmonitor"
                    | "browser"
                    | "difffilter"
                    | "sendmailcmd"
                    | "vcs"
                    | "defaultkeycommand"
            );
        let loads = last == "hookspath"
            || section == "include"
            || section == "includeif"
            || section == "protocol"
            || last == "attributesfile"
            || last == "templatedir"
            || last == "worktree"
            || (section == "url" && last != "name");
        let proxy = last == "proxy" && value.is_known();
        if proxy && !value.text.is_empty() {
            self.host(&value.text);
        } else if crate::paths::is_url(&value.text) && matches!(section, "remote" | "lfs" | "submodule" | "http") {
            self.url(&value.text);
        }
        if !field.is_known() {
            self.unknown("a setting of `git` cannot be known".to_owned());
        } else if loads && value.text != "/dev/null" {
            self.unknown(format!("`{name}` makes `git` run something else"));
        } else if section == "alias" {
            match value.text.strip_prefix('!') {
                Some(text) => {
                    self.inner_text(&Field::known(text), "git", state);
                }
                None => {
                    self.inner_text(&Field::known(format!("git {}", value.text)), "git", state);
                }
            }
        } else if runs && !["", "true", "false", "store", "cache", "osxkeychain"].contains(&value.text.as_str()) {
            self.inner_text(&Field::known(value.text.trim_start_matches('!')), "git", state);
        }
    }
}
