//! What an outgoing URL may reach.
