//! What the user writes under `hooks`.
