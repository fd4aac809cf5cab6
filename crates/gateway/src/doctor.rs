//! `doctor` on demand: another process of this program looks at everything, as it does on the command line, beside the
//! turns that go on here.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use jiff::Timestamp;
use pintle_domain::json::{Value, json};
use tokio::process::Command;
use tokio::sync::Mutex;

use crate::error::{ApiError, ErrorCode};

/// How long it may take: each provider, server and guard has its own deadlines, and they are asked side by side.
const TIMEOUT: Duration = Duration::from_secs(120);

/// The longest findings that are read, in bytes.
const MAX_BYTES: usize = 4 << 20;

/// How it is started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DoctorCommand {
    /// The program: this one.
    pub program: PathBuf,
    /// What it is told, so that it looks at the configuration that is served.
    pub args: Vec<OsString>,
}

/// Examines, once at a time.
pub(crate) struct Doctor {
    command: Option<DoctorCommand>,
    busy: Mutex<()>,
    last: RwLock<Option<Value>>,
}

impl Doctor {
    pub(crate) fn new(command: Option<DoctorCommand>) -> Self {
        Self { command, busy: Mutex::default(), last: RwLock::default() }
    }

    /// What it found last, and when.
    pub(crate) fn last(&self) -> Option<Value> {
        self.last.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it finds now.
    pub(crate) async fn examine(&self) -> Result<Value, ApiError> {
        let missing = || ApiError::precondition("this server does not know how it was started; run `pintle doctor`");
        let command = self.command.as_ref().ok_or_else(missing)?;
        let busy = || ApiError {
            retry_after_ms: Some(1000),
            ..ApiError::new(ErrorCode::ResourceExhausted, "doctor runs already; ask again when it is done")
        };
        let _turn = self.busy.try_lock().map_err(|_| busy())?;
        let unavailable = |why: String| ApiError::new(ErrorCode::Unavailable, format!("doctor could not run: {why}"));
        let mut started = Command::new(&command.program);
        started.args(&command.args).process_group(0).kill_on_drop(true);
        started.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let running = started.spawn().map_err(|error| unavailable(error.to_string()))?;
        let done = tokio::time::timeout(TIMEOUT, running.wait_with_output()).await;
        let done = done.map_err(|_| unavailable(format!("it took longer than {} s", TIMEOUT.as_secs())))?;
        let done = done.map_err(|error| unavailable(error.to_string()))?;
        let nothing = || unavailable(format!("it ended with {} and found nothing", done.status));
        let found = findings(&done.stdout, Timestamp::now()).ok_or_else(nothing)?;
        *self.last.write().unwrap_or_else(PoisonError::into_inner) = Some(found.clone());
        Ok(found)
    }
}

/// The findings in what it wrote until `now`, with all members that they may have.
fn findings(written: &[u8], now: Timestamp) -> Option<Value> {
    if written.len() > MAX_BYTES {
        return None;
    }
    let found: Value = pintle_domain::json::parse(std::str::from_utf8(written).ok()?).ok()?;
    let checks = found["checks"].as_array()?.iter().map(|check| {
        json!({
            "what": check["what"],
            "name": check["name"].as_str().unwrap_or_default(),
            "state": check["state"],
            "step": check["step"],
            "message": check["message"],
            "stderr": check["stderr"].as_str().unwrap_or_default(),
        })
    });
    let checks: Vec<Value> = checks.collect();
    Some(json!({ "checks": checks, "guards": found["guards"], "at": now.to_string() }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_have_all_members() {
        let now: Timestamp = "2026-11-27T06:00:00Z".parse().unwrap();
        let found = findings(
            br#"{"checks": [{"what": "store", "state": "ok", "message": "m"}], "guards": {"armed": 1, "total": 1}}"#,
            now,
        );
        let expected = json!({
            "checks": [{"what": "store", "name": "", "state": "ok", "step": null, "message": "m", "stderr": ""}],
            "guards": {"armed": 1, "total": 1},
            "at": "2026-11-27T06:00:00Z",
        });
        assert_eq!(found, Some(expected));
        for nothing in [&b"error: no"[..], b"", b"{}"] {
            assert_eq!(findings(nothing, now), None);
        }
    }

    #[tokio::test]
    async fn what_it_found_last_is_kept() {
        let says = r#"{"checks": [], "guards": {"armed": 2, "total": 2}}"#;
        let doctor = Doctor::new(Some(DoctorCommand { program: "echo".into(), args: vec![says.into()] }));
        assert_eq!(doctor.last(), None);
        let found = doctor.examine().await.unwrap();
        assert_eq!((&found["guards"]["armed"], doctor.last()), (&json!(2), Some(found.clone())));
    }

    #[tokio::test]
    async fn it_runs_once_at_a_time_and_says_why_it_does_not() {
        let never = Doctor::new(None);
        assert_eq!(never.examine().await.unwrap_err().code, ErrorCode::FailedPrecondition);
        let command = |program: &str| Some(DoctorCommand { program: program.into(), args: Vec::new() });
        assert_eq!(Doctor::new(command("/nowhere")).examine().await.unwrap_err().code, ErrorCode::Unavailable);
        let quiet = Doctor::new(command("true"));
        assert_eq!(quiet.examine().await.unwrap_err().code, ErrorCode::Unavailable);
        let _turn = quiet.busy.lock().await;
        assert_eq!(quiet.examine().await.unwrap_err().code, ErrorCode::ResourceExhausted);
    }
}
