//! The text of an execution that is sealed: its fault, and beside it the beginning of what its command wrote.

use domain::execution::KeptOutput;
use domain::fault::Cause;
use serde::{Deserialize, Serialize};

/// Stands before a text that is JSON. A fault alone is kept as it is, as the published schema has it.
const MARK: &str = "pintle:1|";

#[derive(Serialize, Deserialize)]
struct KeptDetail {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    output: Option<Box<KeptOutput>>,
}

/// What is sealed; nothing if there is neither.
pub(super) fn written(error: Option<&Cause>, output: Option<Box<KeptOutput>>) -> Option<String> {
    let error = error.map(|error| error.unredacted().to_owned());
    match (error, output) {
        (None, None) => None,
        (Some(error), None) if !error.starts_with(MARK) => Some(error),
        (error, output) => {
            let kept = serde_json::to_string(&KeptDetail { error, output }).expect("texts are plain JSON");
            Some(format!("{MARK}{kept}"))
        }
    }
}

/// The fault and the output that `text` was sealed of.
pub(super) fn read(text: &str) -> (Option<Cause>, Option<Box<KeptOutput>>) {
    match text.strip_prefix(MARK).and_then(|kept| serde_json::from_str::<KeptDetail>(kept).ok()) {
        Some(KeptDetail { error, output }) => (error.map(Cause::from), output),
        None => (Some(Cause::from(text)), None),
    }
}

#[cfg(test)]
mod tests {
    use domain::execution::OutputHead;

    use super::*;

    #[test]
    fn a_fault_alone_is_kept_as_it_is_and_everything_comes_back() {
        let output = || {
            let stderr = Some(OutputHead { text: "no\n\"rm\"".into(), cut: true });
            Some(Box::new(KeptOutput { stdout: None, stderr }))
        };
        let fault = Cause::from("it left with 3");
        assert_eq!(written(None, None), None);
        assert_eq!(written(Some(&fault), None).as_deref(), Some(fault.unredacted()));
        // Also one that says that it is something else.
        let forged = Cause::from(r#"pintle:1|{"output":{"stdout":{"text":"not mine","cut":false}}}"#);
        for error in [None, Some(fault), Some(forged)] {
            let kept = written(error.as_ref(), output()).unwrap();
            assert_eq!(read(&kept), (error.clone(), output()));
            let alone = written(error.as_ref(), None);
            assert_eq!(alone.map(|alone| read(&alone)).unwrap_or_default(), (error, None));
        }
        assert_eq!(read("pintle:1|of before"), (Some("pintle:1|of before".into()), None));
    }
}
