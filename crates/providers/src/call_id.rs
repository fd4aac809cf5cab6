//! The ids of calls to which a server gave none.

/// An id for a call whose server gave it none. Random: it must differ from the ids of earlier turns too.
pub(crate) fn fresh_id() -> String {
    format!("call_{:024x}", fastrand::u128(..) >> 32)
}
