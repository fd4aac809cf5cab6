//! The hook door: hooks are heard, their sessions looked after and the agents of new ones met, as one piece of work. The
//! same for a daemon and for a gateway.

use std::panic::resume_unwind;
use std::sync::Arc;
use std::time::Duration;

use pintle_host::config::Env;
use tokio::task::JoinSet;
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
            as_task(listening.serve(desk, (stop.clone(), idle))).await;
            looked_after.cancel();
        };
        tokio::join!(served, looked.look_after(&env, &looked_after), looked.meet(&env, &looked_after));
    }
}

/// Does `work` where the system's news arrive, on the threads of the runtime: whoever waits here may be on another one,
/// to which each hook would be handed and back. It ends when nobody waits for it, and what it panics with goes on here.
async fn as_task(work: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = JoinSet::new();
    tasks.spawn(work);
    if let Some(Err(error)) = tasks.join_next().await
        && let Ok(panic) = error.try_into_panic()
    {
        resume_unwind(panic);
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    #[should_panic(expected = "nobody is heard")]
    async fn a_panic_goes_on_where_the_work_is_waited_for() {
        as_task(async { panic!("nobody is heard") }).await;
    }

    #[tokio::test]
    async fn work_ends_when_nobody_waits_for_it() {
        let (held, ended) = oneshot::channel::<()>();
        {
            let work = as_task(async move {
                let _held = held;
                pending::<()>().await;
            });
            tokio::pin!(work);
            tokio::select! {
                biased;
                () = &mut work => panic!("it has no end"),
                () = ready(()) => {}
            }
        }
        assert!(ended.await.is_err());
    }
}
