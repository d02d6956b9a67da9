//! Queries to each service as a client on the sender sends them, with checks of the answers.
//!
//! * DNS over UDP (RFC 1035): queries for the server's IPv4 and IPv6 address in turn.
//! * DHCP as a client that already has its address and asks for the other settings: DHCPINFORM (RFC 2131) over IPv4, an
//!   Information-request (RFC 8415) over IPv6. Nothing is leased, so queries never exhaust the addresses.

use crate::addressing::address;
use crate::hardware_address;
use stacklab_model::{Family, Role, Service};
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, SocketAddrV6, UdpSocket};
use std::time::Duration;

pub(crate) mod directory;

/// The only name in DNS. `.test` is reserved by RFC 6761.
pub(crate) const NAME: &str = "server.test";
pub(crate) const SUFFIX: &str = "cn=stacklab";
pub(crate) const ENTRIES: u32 = 100;
pub(crate) const TIMEOUT: Duration = Duration::from_millis(500);

pub(crate) fn entry(number: u32) -> String {
    format!("user{}", number % ENTRIES)
}

pub(crate) fn strange(what: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

pub(crate) fn expect(holds: bool, what: &str) -> io::Result<()> {
    if holds { Ok(()) } else { Err(strange(what)) }
}

/// Sends a query over a family from the calling thread's namespace, and waits for its answer. The number selects what
/// the query asks for. `interface` is the index of the link's interface, for link-local addresses.
pub(crate) fn ask(service: Service, family: Family, number: u32, interface: u32) -> io::Result<()> {
    match service {
        Service::Dns => ask_dns(family, number),
        Service::Dhcp => ask_dhcp(family, number, interface),
        Service::Directory => directory::ask(family, number),
    }
}

const PORT: u16 = 53;
/// The flags of a query with recursion desired. An answer has the first bit set, and no error in the last four bits.
const QUERY: u16 = 0x0100;
const ANSWER: u16 = 0x8000;
const ERROR: u16 = 0x000f;
const INTERNET: u16 = 1;
const HEADER: usize = 12;

pub(crate) fn ask_dns(family: Family, number: u32) -> io::Result<()> {
    let wanted = if number.is_multiple_of(2) { Family::Ipv4 } else { Family::Ipv6 };
    let id = number as u16;
    let socket = UdpSocket::bind((address(family, Role::Sender).0, 0))?;
    socket.connect((address(family, Role::Receiver).0, PORT))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    socket.send(&query(id, wanted))?;
    let mut answer = [0; 512];
    let length = socket.recv(&mut answer)?;
    check_dns(&answer[..length], id, wanted)
}

fn query(id: u16, wanted: Family) -> Vec<u8> {
    let counts = [1, 0, 0, 0];
    let mut bytes: Vec<u8> = [id, QUERY].into_iter().chain(counts).flat_map(u16::to_be_bytes).collect();
    for label in NAME.split('.') {
        bytes.push(label.len() as u8);
        bytes.extend(label.bytes());
    }
    bytes.push(0);
    bytes.extend([kind(wanted), INTERNET].into_iter().flat_map(u16::to_be_bytes));
    bytes
}

fn kind(family: Family) -> u16 {
    match family {
        Family::Ipv4 => 1,
        Family::Ipv6 => 28,
    }
}

/// Checks that the answer repeats the question, and that its only record is the receiver's address.
pub(crate) fn check_dns(answer: &[u8], id: u16, wanted: Family) -> io::Result<()> {
    let word = |place: usize| Some(u16::from_be_bytes([*answer.get(place)?, *answer.get(place + 1)?]));
    expect(word(0) == Some(id), "an answer to another query")?;
    let flags = word(2).unwrap_or(0);
    expect(flags & ANSWER != 0 && flags & ERROR == 0, "the server refuses the query")?;
    expect(word(6) == Some(1), "the answer does not have exactly one address")?;
    let found = match address(wanted, Role::Receiver).0 {
        IpAddr::V4(address) => answer.ends_with(&address.octets()),
        IpAddr::V6(address) => answer.ends_with(&address.octets()),
    };
    expect(found, "another address than the server's")?;
    let query = query(id, wanted);
    let question = HEADER..query.len();
    expect(answer.get(question.clone()) == Some(&query[question]), "an answer to another question")
}

/// The client's and the server's port, over IPv4 and IPv6.
const PORTS: [[u16; 2]; 2] = [[68, 67], [546, 547]];
/// The multicast address of all DHCPv6 servers on the link.
const SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);

/// The magic cookie before DHCP's options in a BOOTP message, and the minimum length of such a message.
const MAGIC: [u8; 4] = [99, 130, 83, 99];
const OPTIONS: usize = 236;
const MIN_LENGTH: usize = 300;
/// DHCP options: message type, parameter request list, end.
const KIND: u8 = 53;
const ASKED: u8 = 55;
const END: u8 = 255;
const INFORM: u8 = 8;
const ACKNOWLEDGED: u8 = 5;

/// DHCPv6 message types.
const INFORMATION_REQUEST: u8 = 11;
const REPLY: u8 = 7;

pub(crate) fn ask_dhcp(family: Family, number: u32, interface: u32) -> io::Result<()> {
    let own = address(family, Role::Sender).0;
    let server = address(family, Role::Receiver).0;
    let (ports, to) = match server {
        IpAddr::V4(server) => (PORTS[0], SocketAddr::from((server, PORTS[0][1]))),
        IpAddr::V6(_) => (PORTS[1], SocketAddrV6::new(SERVERS, PORTS[1][1], 0, interface).into()),
    };
    let socket = UdpSocket::bind((own, ports[0]))?;
    socket.set_read_timeout(Some(TIMEOUT))?;
    let query = match own {
        IpAddr::V4(own) => inform(number, own.octets()),
        IpAddr::V6(_) => information_request(number),
    };
    socket.send_to(&query, to)?;
    let mut answer = [0; 1500];
    let length = socket.recv(&mut answer)?;
    match family {
        Family::Ipv4 => check_inform(&answer[..length], number),
        Family::Ipv6 => check_information(&answer[..length], number),
    }
}

fn inform(number: u32, own: [u8; 4]) -> Vec<u8> {
    // BOOTREQUEST; hardware type Ethernet; hardware addresses of six bytes.
    let mut bytes = vec![1, 1, 6, 0];
    bytes.extend(number.to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(own);
    bytes.resize(28, 0);
    bytes.extend(hardware_address(Role::Sender));
    bytes.resize(OPTIONS, 0);
    bytes.extend(MAGIC);
    // The requested options are subnet mask, router and name servers.
    bytes.extend([KIND, 1, INFORM, ASKED, 3, 1, 3, 6, END]);
    bytes.resize(MIN_LENGTH, 0);
    bytes
}

pub(crate) fn check_inform(answer: &[u8], number: u32) -> io::Result<()> {
    expect(
        answer.first() == Some(&2) && answer.get(4..8) == Some(&number.to_be_bytes()),
        "no answer to this query",
    )?;
    let mut options = answer.get(OPTIONS..).and_then(|rest| rest.strip_prefix(&MAGIC)).unwrap_or_default();
    while let [kind, length, rest @ ..] = options {
        if *kind == KIND {
            return expect(rest.first() == Some(&ACKNOWLEDGED), "the server refuses the query");
        }
        options = rest.get(usize::from(*length)..).unwrap_or_default();
    }
    Err(strange("an answer of no kind"))
}

fn information_request(number: u32) -> Vec<u8> {
    let [_, id @ ..] = number.to_be_bytes();
    let mut bytes = vec![INFORMATION_REQUEST];
    bytes.extend(id);
    // The client's identifier is its Ethernet address (DUID-LL); the elapsed time is zero; name servers are
    // requested.
    write_option(&mut bytes, 1, &[&[0, 3, 0, 1][..], &hardware_address(Role::Sender)].concat());
    write_option(&mut bytes, 8, &[0, 0]);
    write_option(&mut bytes, 6, &[0, 23]);
    bytes
}

fn write_option(bytes: &mut Vec<u8>, kind: u16, content: &[u8]) {
    bytes.extend(kind.to_be_bytes());
    bytes.extend((content.len() as u16).to_be_bytes());
    bytes.extend(content);
}

pub(crate) fn check_information(answer: &[u8], number: u32) -> io::Result<()> {
    let [_, id @ ..] = number.to_be_bytes();
    expect(answer.first() == Some(&REPLY) && answer.get(1..4) == Some(&id), "no answer to this query")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_as_rfc_1035_has_it() {
        let expected =
            b"\x12\x34\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x06server\x04test\x00\x00\x1c\x00\x01";
        assert_eq!(query(0x1234, Family::Ipv6), expected);
    }

    fn refuse_dns(answer: &[u8], id: u16, wanted: Family) -> String {
        check_dns(answer, id, wanted).unwrap_err().to_string()
    }

    #[test]
    fn only_the_right_dns_answer_counts() {
        let mut answer = query(7, Family::Ipv4);
        (answer[2], answer[7]) = (0x85, 1);
        answer.extend(b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x00\x00\x04\xc6\x12\x00\x02");
        check_dns(&answer, 7, Family::Ipv4).unwrap();
        assert!(refuse_dns(&answer, 8, Family::Ipv4).contains("another query"));
        assert!(refuse_dns(&answer, 7, Family::Ipv6).contains("another address"));
        assert!(refuse_dns(&query(7, Family::Ipv4), 7, Family::Ipv4).contains("refuses"));
        assert!(refuse_dns(&[], 7, Family::Ipv4).contains("another query"));
        // It ends with the address, and asks nothing.
        let bare = [&answer[..HEADER], &answer[answer.len() - 4..]].concat();
        assert!(refuse_dns(&bare, 7, Family::Ipv4).contains("another question"));
        answer[3] = 3;
        assert!(refuse_dns(&answer, 7, Family::Ipv4).contains("refuses"));
    }

    #[test]
    fn client_with_an_address_asks_as_in_rfc_2131() {
        let query = inform(0x0102_0304, [198, 18, 0, 1]);
        assert_eq!(query.len(), MIN_LENGTH);
        assert_eq!(query[..16], [1, 1, 6, 0, 1, 2, 3, 4, 0, 0, 0, 0, 198, 18, 0, 1]);
        assert_eq!(query[28..34], hardware_address(Role::Sender));
        assert_eq!(query[236..249], [99, 130, 83, 99, 53, 1, 8, 55, 3, 1, 3, 6, 255]);
    }

    #[test]
    fn an_information_request_is_as_rfc_8415_has_it() {
        let expected =
            [11, 0, 0, 9, 0, 1, 0, 10, 0, 3, 0, 1, 2, 0, 0, 0, 0, 1, 0, 8, 0, 2, 0, 0, 0, 6, 0, 2, 0, 23];
        assert_eq!(information_request(9), expected);
    }

    #[test]
    fn only_the_right_dhcp_answer_counts() {
        let mut answer = inform(7, [198, 18, 0, 1]);
        assert!(check_inform(&answer, 7).is_err(), "a query");
        answer[0] = 2;
        // The server identifier comes before the message type; dnsmasq sends them in the other order.
        answer.splice(240.., [54, 4, 198, 18, 0, 2, 53, 1, 5, 255]);
        check_inform(&answer, 7).unwrap();
        assert!(check_inform(&answer, 8).is_err());
        answer[248] = 6;
        assert!(check_inform(&answer, 7).unwrap_err().to_string().contains("refuses"));
        assert!(check_inform(&answer[..238], 7).is_err());
        assert!(check_information(&[7, 0, 0, 9, 0], 9).is_ok());
        assert!(check_information(&[7, 0, 0, 8], 9).is_err() && check_information(&[2, 0, 0, 9], 9).is_err());
    }
}
