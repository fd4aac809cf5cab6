//! `pintle serve`, as its clients see it: the real program behind a real socket.

mod asking;
mod doors;
mod ending;
mod hostile;
mod http;
mod http_client;
mod described;
mod front_end;
mod media;
mod pending;
mod protocol;
mod repeats;
mod sdk;
mod rules;
mod server;
mod talking;
mod typescript;
