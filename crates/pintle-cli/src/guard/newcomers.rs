//! Looks at the agent of each session that has begun: in which version it runs, and, where that one is new here, whether
//! it is held. Nothing of that keeps a hook waiting.

use std::path::Path;

use jiff::Timestamp;
use pintle_guard::GuardHost;
use pintle_host::config::Env;
use tokio_util::sync::CancellationToken;

use super::host_program;
use super::installs::found_in_files;
use super::proofs::{GuardTry, keep_try, proofs, tries, wants_proof};
use super::proving::{ProofBy, is_trial, prove};
use super::sessions::HostSession;
use super::versions::{self, HostVersion};
use super::working::Desk;

impl Desk {
    /// Looks at the agents of sessions that begin until `stop`, in the surroundings `env`. One at a time: an agent that is
    /// tried takes a processor of the person's.
    pub(crate) async fn meet(&self, env: &Env, stop: &CancellationToken) {
        let Some(mut begun) = self.begun.take() else { return };
        let all = async {
            while let Some(name) = begun.recv().await {
                if let Some(session) = self.sessions.of(&name) {
                    self.meet_one(&session, env).await;
                }
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = all => {}
        }
    }

    async fn meet_one(&self, session: &HostSession, env: &Env) {
        // Who is tried is looked at by those who try it.
        let Some(host) = pintle_guard::host(&session.host).filter(|_| !is_trial(&session.folder)) else { return };
        let program = host_program::on_path(host, env);
        let version = match (&session.version, &program) {
            (Some(version), _) => versions::judge(version, host.versions),
            (None, Some(program)) => {
                let packaged = host_program::version_of(host, program);
                let version = match packaged {
                    Some(version) => versions::judge(&version, host.versions),
                    None => versions::look(program, host.versions).await,
                };
                if let HostVersion::Known(version) | HostVersion::Unproven(version) = &version {
                    self.sessions.runs_in(&session.session, Some(version));
                    self.keep_sessions();
                }
                version
            }
            (None, None) => return,
        };
        let (proof, tried) = (proofs(&self.places).remove(host.id), tries(&self.places).remove(host.id));
        if let Some(program) = program
            && wants_proof(&version, proof.as_ref(), tried.as_ref())
            && self.is_everywhere(host, env)
            && let HostVersion::Known(version) | HostVersion::Unproven(version) = version
        {
            self.try_out(host, &program, (version.as_str(), env)).await;
        }
    }

    /// Whether `host` has our hooks wherever it works: those of one project are not there where it is tried.
    fn is_everywhere(&self, host: &'static GuardHost, env: &Env) -> bool {
        let elsewhere = Env { cwd: std::env::temp_dir(), ..env.clone() };
        found_in_files(host, &elsewhere, &self.places).iter().any(|it| it.flaw.is_none())
    }

    /// Proves `host` once in `version`, whatever comes of it: the session that this begins is none that asks for another.
    async fn try_out(&self, host: &'static GuardHost, program: &Path, (version, env): (&str, &Env)) {
        let keep = |said: String| {
            let tried = GuardTry { version: version.to_owned(), at: Timestamp::now(), said };
            keep_try(&self.places, host.id, tried)
        };
        // Whoever cannot remember it would do it at each session.
        if let Err(error) = keep("under way".to_owned()) {
            tracing::warn!("{} is not tried, because that cannot be remembered: {error}", host.name);
            return;
        }
        tracing::info!("{} {version} is new here and is tried", host.name);
        let said = match prove(host, program, (&self.places, ProofBy::Daemon(env))).await {
            Ok(proved) => format!("{}: {}", proved.word, proved.detail),
            Err(error) => error.message,
        };
        tracing::info!("{} {version}: {said}", host.name);
        if let Err(error) = keep(said) {
            tracing::warn!("what came of {} cannot be kept: {error}", host.name);
        }
    }
}
