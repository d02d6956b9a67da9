//! How a test begins.

use super::*;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener};

#[test]
fn cookie_has_base_32_letters_and_ends_with_zero() {
    let cookie = cookie_of(std::array::from_fn(|place| (place * 7) as u8));
    for letter in &cookie[..36] {
        assert!(letter.is_ascii_lowercase() || (b'2'..=b'7').contains(letter));
    }
    assert_eq!(cookie[36], 0);
}

#[test]
fn begins_again_after_a_reset() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap();
    let server = thread::spawn(move || {
        let (first, _) = listener.accept().unwrap();
        // Closed with what it has not read, it is reset.
        first.peek(&mut [0]).unwrap();
        drop(first);
        let (mut second, _) = listener.accept().unwrap();
        second.read_exact(&mut [0; 37]).unwrap();
        second.write_all(&[State::ParamExchange.byte()]).unwrap();
    });
    let test = Test {
        from: IpAddr::from([127, 0, 0, 1]).into(),
        to,
        parameters: Parameters::new(Transport::Tcp, 1000),
        length: Length::Packets(1),
        io: Io::Send,
        interrupted: &AtomicBool::new(false),
        keeps_figures: false,
    };
    let error = ClientSession::open(&test, None).err().unwrap().to_string();
    assert!(error.contains("parameters"), "{error}");
    server.join().unwrap();
}
