//! Servers and clients of others, friendly and hostile, over real pipes and sockets.
//!
//! `./pintle test` installs those that are not ours.

mod host;
mod hostile;
mod real;
mod served;
