//! `pintle serve`, as its clients see it: the real program behind a real socket.

mod asking;
mod doors;
mod ending;
mod http;
mod rules;
mod server;
mod talking;
