//! Every wire from outside: what is sent, what is understood.

#[cfg(test)]
mod claude_answer;
#[cfg(test)]
mod claude_config;
#[cfg(test)]
mod claude_documents;
#[cfg(test)]
mod command;
#[cfg(test)]
mod process_reply;
#[cfg(test)]
mod process_wire;
