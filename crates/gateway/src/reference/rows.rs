//! A row of the table.

/// One row: a name, its types, and what else there is to say.
pub(in crate::reference) struct MethodRow {
    pub(in crate::reference) name: &'static str,
    pub(in crate::reference) params: &'static str,
    pub(in crate::reference) payload: &'static str,
    pub(in crate::reference) note: &'static str,
}

/// An event, or a shape.
pub(in crate::reference) struct Row {
    pub(in crate::reference) name: &'static str,
    pub(in crate::reference) of: &'static str,
    pub(in crate::reference) note: &'static str,
}

/// The row of a method.
pub(in crate::reference) const fn method(
    name: &'static str,
    params: &'static str,
    payload: &'static str,
    note: &'static str,
) -> MethodRow {
    MethodRow { name, params, payload, note }
}

/// The row of an event, or of a shape.
pub(in crate::reference) const fn row(name: &'static str, of: &'static str, note: &'static str) -> Row {
    Row { name, of, note }
}
