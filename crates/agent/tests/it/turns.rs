//! Whole turns: what the user, the model, the record and the observers get.
