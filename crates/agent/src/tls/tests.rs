//! Handshakes over real connections, and keys in files.

use super::*;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(5);

fn streams() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("[::1]:0").unwrap();
    let there = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (listener.accept().unwrap().0, there)
}

/// What a coordinator that wants this fingerprint gets from an agent.
fn connect(agent: &Identity, wanted: Fingerprint) -> (Result<Channel, TlsError>, Result<Channel, TlsError>) {
    let (there, here) = streams();
    let deadline = Instant::now() + LIMIT;
    thread::scope(|scope| {
        let accepted = scope.spawn(move || agent.accept(there, deadline));
        let secured = secure(here, wanted, deadline);
        (accepted.join().unwrap(), secured)
    })
}

#[test]
fn session_needs_the_fingerprint_and_is_full_duplex() {
    let own = Identity::generate();
    let other = Identity::generate();
    let (accepted, secured) = connect(&own, other.fingerprint);
    assert!(matches!(secured.unwrap_err(), TlsError::OtherKey) && accepted.is_err());
    let (accepted, secured) = connect(&own, own.fingerprint);
    let agent = accepted.unwrap();
    let coordinator = secured.unwrap();
    assert!(agent.is_secure());
    assert_eq!(agent.binding().unwrap(), coordinator.binding().unwrap());
    assert_eq!(agent.binding().unwrap().len(), 64);
    // More than sockets hold, in both directions: neither end's writing stops its reading.
    let much: Vec<u8> = (0..12_000_000_u32).map(|i| (i >> 7) as u8).collect();
    thread::scope(|scope| {
        for end in [&agent, &coordinator] {
            let mut writer = end.clone();
            let much = &much;
            scope.spawn(move || {
                writer.write_all(much).unwrap();
                writer.finish().unwrap();
            });
        }
        for mut end in [agent, coordinator] {
            let mut heard = Vec::new();
            end.read_to_end(&mut heard).unwrap();
            assert!(heard == much);
        }
    });
}

#[test]
fn refuses_no_tls_and_an_endless_handshake() {
    let own = Identity::generate();
    let (mut there, here) = streams();
    there.write_all(b"{\"stacklab_agent\":2}\n").unwrap();
    let refused = secure(here, own.fingerprint, Instant::now() + LIMIT).unwrap_err();
    assert!(refused.to_string().contains("start it with --tls"), "{refused}");
    assert_eq!(begins(&there, Instant::now() + LIMIT).unwrap(), Some(true));
    // A handshake byte by byte, each in time.
    let (there, mut here) = streams();
    let started = Instant::now();
    thread::scope(|scope| {
        scope.spawn(move || {
            // It would last for twice as long as the test may.
            let mut bytes = [HANDSHAKE, 3, 1, 1, 0].into_iter().chain([0; 1000]);
            let is_refused = bytes.any(|byte| {
                thread::sleep(Duration::from_millis(20));
                here.write_all(&[byte]).is_err()
            });
            assert!(is_refused);
        });
        let error = own.accept(there, started + Duration::from_millis(300)).unwrap_err();
        assert!(
            matches!(&error, TlsError::Connection(error) if error.kind() == io::ErrorKind::TimedOut),
            "{error}"
        );
    });
    assert!(started.elapsed() < 2 * LIMIT, "{:?}", started.elapsed());
}

#[test]
fn a_key_is_kept_in_a_file_for_its_owner_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tls.pem");
    let made = Identity::read_or_create(&path).unwrap().fingerprint;
    assert_eq!(Identity::read_or_create(&path).unwrap().fingerprint, made);
    assert_ne!(Identity::generate().fingerprint, made);
    assert_eq!(made.to_string().parse(), Ok(made));
    for wrong in ["", "12", &"x".repeat(64), &"0".repeat(66)] {
        assert!(wrong.parse::<Fingerprint>().unwrap_err().contains("64 hexadecimal"), "{wrong}");
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
        let refused = Identity::read_or_create(&path).err().unwrap().to_string();
        assert!(refused.contains("tls.pem") && refused.contains("chmod 600"), "{refused}");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    std::fs::write(&path, "no key").unwrap();
    let refused = Identity::read_or_create(&path).err().unwrap().to_string();
    assert!(refused.contains("tls.pem") && refused.contains("remove it"), "{refused}");
}

#[test]
fn a_fingerprint_is_of_the_public_key_alone() {
    // RFC 8410, 10.3: a private key, and 10.1: its public key.
    let private = "-----BEGIN PRIVATE KEY-----\nMC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n";
    let public = STANDARD.decode("MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=").unwrap();
    assert_eq!(Identity::of(private).unwrap().fingerprint, Fingerprint::of(&public));
}
