//! Who is at the other end of a connection within this machine.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsRawFd as _;

use nix::libc;
use nix::sys::socket::{AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, recv, send, socket};

use super::super::{ADOPTER_NAME, PeerProcess};
use super::processes::ProcessStat;

/// How many ancestors are looked at: a chain that is longer is not a person's.
const MAX_ANCESTORS: usize = 1000;

/// A question about one socket: the kernel's head of a message, and what it wants to know. Source: `linux/netlink.h`,
/// `linux/inet_diag.h`.
const QUESTION_BYTES: usize = 16 + 56;
/// Where the inode stands in its answer.
const INODE_AT: usize = 16 + 4 + 48 + 16;
const SOCK_DIAG_BY_FAMILY: u16 = 20;
const NLM_F_REQUEST: u16 = 1;

/// Who holds the end `theirs` of a TCP connection to `ours`. Both are addresses of this machine; `agents` are processes of
/// other agents, each with the moment since when it runs.
pub fn peer_of_tcp((theirs, ours): (SocketAddr, SocketAddr), agents: &[(u32, u64)]) -> PeerProcess {
    let Some(inode) = socket_of(plain(theirs), plain(ours)) else { return PeerProcess::Gone };
    let processes = Processes::read(agents);
    let holds = |pid: &i32| holds(*pid, inode);
    if processes.below_agents().any(|pid| holds(&pid)) { PeerProcess::OfAgent } else { PeerProcess::Other }
}

/// Whether the process `pid` is below an agent, or one of `agents`.
pub fn peer_of_pid(pid: i32, agents: &[(u32, u64)]) -> PeerProcess {
    let processes = Processes::read(agents);
    if !processes.0.contains_key(&pid) {
        return PeerProcess::Gone;
    }
    if processes.is_below_agent(pid) { PeerProcess::OfAgent } else { PeerProcess::Other }
}

/// The processes of this machine: the parent of each, and whether it watches over a child of a host of agents or is an agent
/// itself.
struct Processes(HashMap<i32, (i32, bool)>);

impl Processes {
    fn read(agents: &[(u32, u64)]) -> Self {
        let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
        let is_adopter = |stat: &ProcessStat| stat.name.as_bytes() == ADOPTER_NAME.to_bytes();
        let known = |pid: i32| {
            let stat = ProcessStat::of(pid.cast_unsigned())?;
            let is_agent = is_adopter(&stat) || agents.contains(&(pid.cast_unsigned(), stat.since));
            Some((pid, (stat.parent.cast_signed(), is_agent)))
        };
        Self(pids.filter_map(known).collect())
    }

    fn is_below_agent(&self, mut pid: i32) -> bool {
        for _ in 0..MAX_ANCESTORS {
            match self.0.get(&pid) {
                Some((_, true)) => return true,
                Some((parent, false)) if *parent > 0 => pid = *parent,
                Some(_) | None => return false,
            }
        }
        true
    }

    fn below_agents(&self) -> impl Iterator<Item = i32> {
        self.0.keys().copied().filter(|pid| self.is_below_agent(*pid))
    }
}

/// Whether the process holds the socket, as far as that can be ruled out.
fn holds(pid: i32, inode: u64) -> bool {
    let wanted = format!("socket:[{inode}]");
    match fs::read_dir(format!("/proc/{pid}/fd")) {
        Ok(files) => {
            let mut files = files.flatten();
            files.any(|file| fs::read_link(file.path()).is_ok_and(|target| target.as_os_str() == wanted.as_str()))
        }
        // Whose files nobody may see may hold it; whoever is gone holds nothing.
        Err(error) => error.kind() == std::io::ErrorKind::PermissionDenied,
    }
}

/// The inode of the socket at the end `theirs`; nothing where nobody holds it any more. The kernel is asked for this one;
/// its tables, which take longer with every connection, are for kernels that cannot be asked.
fn socket_of(theirs: SocketAddr, ours: SocketAddr) -> Option<u64> {
    if let Ok(Some(inode)) = asked(theirs, ours) {
        return (inode != 0).then_some(inode.into());
    }
    ["/proc/net/tcp", "/proc/net/tcp6"]
        .iter()
        .find_map(|path| inode_of(&fs::read_to_string(path).ok()?, (theirs, ours)))
}

/// What the kernel says when it is asked for one socket; nothing where it knows none, or does not answer such questions.
fn asked(theirs: SocketAddr, ours: SocketAddr) -> nix::Result<Option<u32>> {
    let kernel =
        socket(AddressFamily::Netlink, SockType::Datagram, SockFlag::SOCK_CLOEXEC, SockProtocol::NetlinkSockDiag)?;
    let mut question = Vec::with_capacity(QUESTION_BYTES);
    question.extend(u32::try_from(QUESTION_BYTES).unwrap_or_default().to_ne_bytes());
    question.extend(SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    question.extend(NLM_F_REQUEST.to_ne_bytes());
    question.extend([0; 8]);
    let family = if theirs.is_ipv4() { libc::AF_INET } else { libc::AF_INET6 };
    question.extend([
        u8::try_from(family).unwrap_or_default(),
        u8::try_from(libc::IPPROTO_TCP).unwrap_or_default(),
        0,
        0,
    ]);
    question.extend(u32::MAX.to_ne_bytes());
    question.extend([theirs.port().to_be_bytes(), ours.port().to_be_bytes()].concat());
    question.extend([octets(theirs.ip()), octets(ours.ip())].concat());
    // Any interface, and no cookie of an earlier answer.
    question.extend([0; 4]);
    question.extend([0xff; 8]);
    send(kernel.as_raw_fd(), &question, MsgFlags::empty())?;
    let mut answer = [0; 1024];
    let length = recv(kernel.as_raw_fd(), &mut answer, MsgFlags::MSG_DONTWAIT)?;
    let answer = &answer[..length.min(answer.len())];
    let is_socket = answer.get(4..6) == Some(&SOCK_DIAG_BY_FAMILY.to_ne_bytes());
    let inode = answer.get(INODE_AT..INODE_AT + 4).and_then(|bytes| bytes.try_into().ok());
    Ok(inode.filter(|_| is_socket).map(u32::from_ne_bytes))
}

/// An address as the kernel wants it.
fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => {
            let mut octets = [0; 16];
            octets[..4].copy_from_slice(&ip.octets());
            octets
        }
        IpAddr::V6(ip) => ip.octets(),
    }
}

/// The socket of the connection in a table of the kernel; nothing for one that nobody holds any more.
fn inode_of(table: &str, (theirs, ours): (SocketAddr, SocketAddr)) -> Option<u64> {
    table.lines().skip(1).find_map(|line| {
        let mut fields = line.split_ascii_whitespace().skip(1);
        let ends = (address(fields.next()?)?, address(fields.next()?)?);
        let inode: u64 = fields.nth(6)?.parse().ok()?;
        (ends == (theirs, ours) && inode != 0).then_some(inode)
    })
}

/// An address as the kernel writes it: words of the machine's order in hexadecimal, then the port.
fn address(text: &str) -> Option<SocketAddr> {
    let (host, port) = text.split_once(':')?;
    let word = |at: usize| Some(u32::from_str_radix(host.get(at * 8..at * 8 + 8)?, 16).ok()?.to_ne_bytes());
    let host: IpAddr = match host.len() {
        8 => Ipv4Addr::from(word(0)?).into(),
        32 => {
            let bytes: Vec<u8> = [word(0)?, word(1)?, word(2)?, word(3)?].concat();
            Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).into()
        }
        _ => return None,
    };
    Some(plain(SocketAddr::new(host, u16::from_str_radix(port, 16).ok()?)))
}

/// The same address without anything that only some sockets say.
fn plain(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn tables_of_the_kernel_are_read() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
                     0: 0100007F:1F90 0100007F:C350 01 00000000:00000000 00:00000000 00000000  1000        0 4711 1 0\n   \
                     1: 0100007F:C350 0100007F:1F90 06 00000000:00000000 03:00000000 00000000     0        0 0 3 0\n   \
                     2: 0000000000000000FFFF00000100007F:0001 0000000000000000FFFF00000100007F:0002 01 0:0 0:0 0 0 0 12 1\n";
        let at = |port| SocketAddr::from(([127, 0, 0, 1], port));
        assert_eq!(inode_of(table, (at(8080), at(50_000))), Some(4711));
        assert_eq!(inode_of(table, (at(50_000), at(8080))), None, "nobody holds it any more");
        assert_eq!(inode_of(table, (at(1), at(2))), Some(12));
        assert_eq!(inode_of(table, (at(2), at(1))), None);
        assert_eq!(inode_of("", (at(2), at(1))), None);
    }

    #[test]
    fn who_is_at_the_other_end_is_found() {
        for at in ["127.0.0.1:0", "[::1]:0"] {
            let listener = TcpListener::bind(at).unwrap();
            let ours = listener.local_addr().unwrap();
            let theirs = TcpStream::connect(ours).unwrap();
            let (accepted, from) = listener.accept().unwrap();
            assert_eq!(peer_of_tcp((from, ours), &[]), PeerProcess::Other);
            let listed = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).unwrap_or_default());
            let listed = listed.iter().find_map(|table| inode_of(table, (from, ours)));
            assert_eq!(asked(from, ours).unwrap().map(u64::from), listed, "both ways say the same");
            drop(theirs);
            assert_eq!(peer_of_tcp((from, ours), &[]), PeerProcess::Gone);
            drop(accepted);
        }
        let own = std::process::id();
        let since = ProcessStat::of(own).unwrap().since;
        let check = |agents: &[(u32, u64)], expected: PeerProcess| {
            assert_eq!(peer_of_pid(own.cast_signed(), agents), expected, "{agents:?}");
        };
        check(&[], PeerProcess::Other);
        check(&[(own, since + 1)], PeerProcess::Other);
        check(&[(own, since)], PeerProcess::OfAgent);
        assert_eq!(peer_of_pid(i32::MAX, &[]), PeerProcess::Gone);
    }
}
