//! Files that clients hand over: kept in the store until a session takes them, and brought to the turn that uses them.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use pintle_agent::media::{MAX_MEDIUM_BYTES, MediaScope, NewMedia, TurnMedia, reference_of, type_of};
use pintle_domain::history::HistoryMessage;
use pintle_domain::json::{Value, json};
use pintle_domain::store::{SessionKey, Upload};
use sha2::{Digest as _, Sha256};

use crate::Shared;
use crate::error::{ApiError, ErrorCode};
use crate::media_type::check;
use crate::principal::Principal;
use crate::run::Run;
use crate::session_name::user_of;
use crate::wire::content::{Attachment, REFERENCE};

/// How long an upload waits for a session that takes it: as long as a request is known by its name.
const WAITS: SignedDuration = SignedDuration::from_hours(24);

/// The folder in the home that files for users pass through.
const BROUGHT: &str = "delivering";

/// How much is forgotten in one transaction.
const AT_ONCE: usize = 100;

/// A file as it comes in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IncomingFile {
    pub(crate) content_type: String,
    pub(crate) file_name: String,
    pub(crate) bytes: Vec<u8>,
}

impl Shared {
    /// Keeps a file of `who`, or of the session that it came with. Blocks.
    pub(crate) fn keep_file(
        &self,
        owner: (&SessionKey, &str),
        session: bool,
        file: IncomingFile,
    ) -> Result<Upload, ApiError> {
        let content_type = check(&file.content_type, &file.bytes)?.to_owned();
        self.keep_checked(owner, session, IncomingFile { content_type, ..file })
    }

    /// The same for a file of whatever type.
    fn keep_checked(
        &self,
        (key, user): (&SessionKey, &str),
        session: bool,
        file: IncomingFile,
    ) -> Result<Upload, ApiError> {
        let IncomingFile { content_type, file_name, bytes } = file;
        if bytes.len() as u64 > MAX_MEDIUM_BYTES {
            return Err(too_large());
        }
        let upload = Upload {
            id: uuid::Uuid::new_v4().simple().to_string(),
            tenant: key.tenant.clone(),
            user: user.to_owned(),
            session: session.then(|| key.session.clone()),
            content_type,
            file_name,
            size_bytes: bytes.len() as u64,
            sha256: Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect(),
            created_at: Timestamp::now(),
        };
        let quota = self.desk.limits.media_quota;
        if self.store.keep_upload(&upload, &bytes, quota)? {
            return Ok(upload);
        }
        let mb = quota >> 20;
        Err(ApiError::new(
            ErrorCode::ResourceExhausted,
            format!(
                "the files of this tenant would exceed {mb} MiB; delete sessions, or raise `gateway.media_quota_mb`"
            ),
        )
        .with_details(json!({ "kind": "media_quota" })))
    }

    /// The upload `id`, if it is one that `who` may see.
    pub(crate) fn file_of(&self, who: &Principal, id: &str) -> Result<Upload, ApiError> {
        let sees = |upload: &Upload| match &upload.session {
            None => upload.user == who.user,
            Some(session) => who.sees_others() || user_of(session.as_str()).is_some_and(|user| user == who.user),
        };
        self.store.upload(&who.tenant, id)?.filter(sees).ok_or_else(|| not_found(id))
    }

    /// Brings the files of a request to its session: references of those that come with the prompt; the others go to their
    /// messages.
    pub(crate) async fn attach(
        self: &Arc<Self>,
        run: &Run,
        kept: bool,
        files: Vec<(Option<usize>, Attachment)>,
        history: &mut [HistoryMessage],
    ) -> Result<Vec<String>, ApiError> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let media = self.host.read().await.files.store();
        let media = media.ok_or_else(|| ApiError::new(ErrorCode::Unavailable, "files cannot be kept here"))?;
        let (key, user) = (run.key.clone(), run.name.user.clone());
        let placed = self
            .blocking(move |shared| {
                let scope =
                    MediaScope { tenant: key.tenant.clone(), session: key.session.clone(), ancestors: Vec::new() };
                let turn = media.turn(scope);
                let bring = |file| match kept {
                    true => shared.take_file(&key, &user, file),
                    false => shared.copy(&turn, (&key, &user), file),
                };
                files.into_iter().map(|(place, file)| Ok((place, bring(file)?))).collect::<Result<Vec<_>, ApiError>>()
            })
            .await?;
        let mut of_prompt = Vec::new();
        for (place, reference) in placed {
            match place.and_then(|place| history.get_mut(place)) {
                Some(message) => message.media.push(reference),
                None => of_prompt.push(reference),
            }
        }
        Ok(of_prompt)
    }

    /// Gives a file to a session that stays. Blocks.
    fn take_file(&self, key: &SessionKey, user: &str, file: Attachment) -> Result<String, ApiError> {
        let id = match file {
            Attachment::Kept(id) => match self.store.take_upload(key, &id, user)? {
                true => id,
                false => return Err(not_found(&id)),
            },
            Attachment::Inline { content_type, bytes, file_name } => {
                self.keep_file((key, user), true, IncomingFile { content_type, file_name, bytes })?.id
            }
        };
        reference_of(&id).ok_or_else(|| not_found(&id))
    }

    /// A folder that files of one run stand in until they are kept; it is made where there are any.
    pub(crate) async fn fresh_folder(&self) -> PathBuf {
        let home = self.host.read().await.loaded.config.home.clone();
        home.join(BROUGHT).join(uuid::Uuid::new_v4().to_string())
    }

    /// Keeps the files that tools made for the user of `run` where every node has them: they are its session's, and go
    /// with it. What cannot be kept is said to the user.
    pub(crate) async fn keep_brought(self: &Arc<Self>, run: &Arc<Run>) {
        let files = run.brought();
        let Some(folder) = files.first().and_then(|file| file.parent()).map(Path::to_owned) else { return };
        let kept = run.clone();
        let done = self.blocking(move |shared| {
            for file in files {
                match shared.keep_one(&kept, &file) {
                    Ok(reference) => kept.has_kept(reference),
                    Err(error) => {
                        let name = file.file_name().unwrap_or_default().to_string_lossy();
                        kept.for_user(&format!("the file {name} cannot be kept: {}", error.message));
                    }
                }
            }
            if let Err(error) = std::fs::remove_dir_all(&folder) {
                tracing::warn!("files that were handed over stay in {}: {error}", folder.display());
            }
            Ok(())
        });
        if let Err(error) = done.await {
            tracing::error!("files for a user are lost: {error}");
        }
    }

    /// Keeps a file that a tool made. Blocks.
    fn keep_one(&self, run: &Run, file: &Path) -> Result<String, ApiError> {
        let unread = |error: std::io::Error| ApiError::new(ErrorCode::Internal, error.to_string());
        let bytes = std::fs::read(file).map_err(unread)?;
        let content_type = made_type(&bytes).to_owned();
        let file_name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let file = IncomingFile { content_type, file_name, bytes };
        let upload = self.keep_checked((&run.key, &run.name.user), true, file)?;
        reference_of(&upload.id).ok_or_else(|| not_found(&upload.id))
    }

    /// Copies a file to a session that is one request long: the next request brings it again. Blocks.
    fn copy(&self, turn: &TurnMedia, (key, user): (&SessionKey, &str), file: Attachment) -> Result<String, ApiError> {
        let file = match file {
            Attachment::Inline { content_type, bytes, file_name } => IncomingFile { content_type, file_name, bytes },
            Attachment::Kept(id) => {
                let found = self.store.upload(&key.tenant, &id)?;
                let found = found.filter(|it| it.session.is_none() && it.user == user).ok_or_else(|| not_found(&id))?;
                let bytes = self.store.upload_content(&key.tenant, &id)?.ok_or_else(|| not_found(&id))?;
                IncomingFile { content_type: found.content_type, file_name: found.file_name, bytes }
            }
        };
        let content_type = check(&file.content_type, &file.bytes)?;
        if file.bytes.len() as u64 > MAX_MEDIUM_BYTES {
            return Err(too_large());
        }
        let new = NewMedia {
            bytes: &file.bytes,
            // The model reads the name, and no gate looked at what a client writes there.
            file_name: "",
            content_type: Some(content_type),
            source: "request",
        };
        turn.add(new).map_err(|error| ApiError::new(ErrorCode::Unavailable, format!("a file cannot be kept: {error}")))
    }

    /// Forgets uploads that no session took, requests that nobody sends again, and texts that are gated again. Blocks.
    pub(crate) fn forget_old(&self) -> Result<(), ApiError> {
        let before = Timestamp::now().checked_sub(WAITS).unwrap_or(Timestamp::MIN);
        while self.store.forget_uploads(before, AT_ONCE)? >= AT_ONCE {}
        while self.store.forget_repeats(before, AT_ONCE)? >= AT_ONCE {}
        Ok(())
    }
}

/// What clients are told of an upload.
pub(crate) fn shown(upload: &Upload) -> Value {
    json!({
        "id": upload.id,
        "object": "media",
        "reference": format!("{REFERENCE}{}", upload.id),
        "content_type": upload.content_type,
        "file_name": upload.file_name,
        "size_bytes": upload.size_bytes,
        "sha256": upload.sha256,
        "created_at": upload.created_at,
    })
}

/// What a file is that a tool made, by its first bytes: nobody opens it here, and browsers do not either.
fn made_type(bytes: &[u8]) -> &'static str {
    let is_text = || std::str::from_utf8(bytes).is_ok_and(|text| !text.contains('\0'));
    type_of(bytes).unwrap_or(if is_text() { "text/plain" } else { "application/octet-stream" })
}

fn not_found(id: &str) -> ApiError {
    let id: String = id.chars().take(64).collect();
    ApiError::new(ErrorCode::NotFound, format!("media not found: {id}"))
}

fn too_large() -> ApiError {
    ApiError::invalid(format!("a file has at most {MAX_MEDIUM_BYTES} bytes"))
}
