//! The hook door: hooks are heard, their sessions looked after and the agents of new ones met, as parts of one task. The
//! same for a daemon and for a gateway.

use std::sync::Arc;
use std::time::Duration;

use host::config::Env;
use tokio_util::sync::CancellationToken;

use super::folders::Folders;
use super::host_files::moved_folders;
use super::host_program;
use super::listening::Listening;
use super::working::Desk;
use crate::error::CliError;

/// A door that hooks come in by.
pub(crate) struct HookDoor {
    listening: Listening,
    desk: Arc<Desk>,
    env: Env,
}

impl HookDoor {
    /// The door of those that `listening` hears, who are asked by the configurations `folders`, in the surroundings `env`.
    /// Where `self_edit` says so, agents may change their own settings.
    ///
    /// # Errors
    /// It cannot be written down whether they may.
    pub(crate) fn open(
        listening: Listening,
        (env, folders): (Env, Arc<Folders>),
        self_edit: bool,
    ) -> Result<Self, CliError> {
        let places = listening.places.clone();
        places
            .mark_self_edit(self_edit)
            .map_err(|error| CliError::failed(format!("{} cannot be written to: {error}", places.folder.display())))?;
        let home = env.text("HOME").unwrap_or("/").to_owned();
        let desk = Desk::new(folders, places, (home, moved_folders(&env)));
        let desk = desk.with_self_edit(self_edit).with_programs(host_program::all_on_path(&env));
        Ok(Self { listening, desk: Arc::new(desk), env })
    }

    /// Answers until `stop`, or until nobody has asked for `idle`, if that ends it; what was asked is answered first.
    pub(crate) async fn serve(self, stop: &CancellationToken, idle: Option<Duration>) {
        let Self { listening, desk, env } = self;
        let (looked_after, looked) = (stop.child_token(), desk.clone());
        let served = async {
            listening.serve(desk, (stop.clone(), idle)).await;
            looked_after.cancel();
        };
        tokio::join!(served, looked.look_after(&env, &looked_after), looked.meet(&env, &looked_after));
    }
}
