//! Process hooks: one supervised child each, JSON lines over its pipes.
