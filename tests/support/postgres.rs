//! A real PostgreSQL in a temporary folder, as an unprivileged user, on a Unix socket.

use std::fs;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
const LIMIT: Duration = Duration::from_secs(60);
/// The user and group "nobody": PostgreSQL does not run as root.
const NOBODY: u32 = 65534;

/// A running server. It ends with this.
pub(crate) struct Postgres {
    folder: TempDir,
    programs: PathBuf,
    server: Option<Child>,
    /// Further options of the server.
    options: Vec<String>,
}

impl Postgres {
    /// Creates a cluster and starts its server.
    pub(crate) fn start() -> Self {
        let folder = tempfile::Builder::new().prefix("stacklab-pg-").tempdir().unwrap();
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).unwrap();
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let programs = programs(folder.path());
        let mut postgres = Postgres { folder, programs, server: None, options: Vec::new() };
        let data = postgres.data();
        let made = postgres
            .program("initdb")
            .args(["-U", "lab", "-A", "trust", "-E", "UTF8", "--locale=C", "-D", &data])
            .output()
            .unwrap();
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        postgres.run();
        postgres
    }

    /// Listens on TCP at localhost too, with TLS. Returns the address of a database there, and the file of its
    /// certificate, which is signed by itself.
    pub(crate) fn secure(&mut self, name: &str) -> (String, PathBuf) {
        let [key, certificate] = ["key.pem", "cert.pem"].map(|file| self.folder.path().join(file));
        let made = Command::new("openssl")
            .args([
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:prime256v1",
                "-nodes",
                "-days",
                "2",
            ])
            .args(["-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost"])
            // Not of an authority, which a server may not be.
            .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout"])
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output()
            .expect("this test needs openssl");
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        for file in [&key, &certificate] {
            chown(file, Some(NOBODY), Some(NOBODY)).unwrap();
        }
        fs::set_permissions(&key, fs::Permissions::from_mode(0o600)).unwrap();
        fs::set_permissions(&certificate, fs::Permissions::from_mode(0o644)).unwrap();
        let free = std::net::TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        self.kill();
        for (option, file) in [("ssl_key_file", &key), ("ssl_cert_file", &certificate)] {
            self.options.extend(["-c".to_owned(), format!("{option}={}", file.display())]);
        }
        self.options.extend(["-c".to_owned(), "ssl=on".to_owned(), "-h".to_owned(), "localhost".to_owned()]);
        self.options.extend(["-p".to_owned(), port.to_string()]);
        self.run();
        self.database(name);
        (format!("postgres://lab@localhost:{port}/{name}"), certificate)
    }

    fn port(&self) -> &str {
        let place = self.options.iter().position(|option| option == "-p");
        place.map_or("5432", |place| &self.options[place + 1])
    }

    fn data(&self) -> String {
        self.folder.path().join("data").display().to_string()
    }

    fn socket(&self) -> String {
        self.folder.path().display().to_string()
    }

    /// Starts the server, and waits until it accepts connections.
    pub(crate) fn run(&mut self) {
        let log = fs::File::create(self.folder.path().join("log")).unwrap();
        let data = self.data();
        let socket = self.socket();
        let mut command = self.program("postgres");
        command
            .args(["-D", &data, "-k", &socket, "-c", "listen_addresses=", "-c", "max_connections=500"])
            .args(&self.options);
        self.server = Some(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        let begun = Instant::now();
        while self.says("SELECT 1", "postgres").is_none_or(|answer| answer != "1") {
            let log = fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
            assert!(begun.elapsed() < LIMIT, "PostgreSQL does not start:\n{log}");
            sleep(Duration::from_millis(100));
        }
    }

    /// Kills the server as a power failure would: it recovers from its log when it is started again.
    pub(crate) fn kill(&mut self) {
        if let Some(mut server) = self.server.take() {
            let _ = server.kill();
            let _ = server.wait();
            // Its processes notice the end of their parent.
            sleep(Duration::from_millis(500));
        }
    }

    /// Creates a database, and returns its address.
    pub(crate) fn database(&self, name: &str) -> String {
        self.says(&format!("CREATE DATABASE {name}"), "postgres").expect("the database is created");
        format!("postgres://lab@{}/{name}", self.socket().replace('/', "%2F"))
    }

    /// The answer of a query; `None` if it fails.
    pub(crate) fn says(&self, query: &str, database: &str) -> Option<String> {
        let psql = Command::new("psql")
            .args([
                "-X",
                "-t",
                "-A",
                "-q",
                "-h",
                &self.socket(),
                "-p",
                self.port(),
                "-U",
                "lab",
                "-d",
                database,
                "-c",
                query,
            ])
            .output()
            .expect("this test needs psql: apt-get install postgresql-client");
        psql.status.success().then(|| String::from_utf8_lossy(&psql.stdout).trim().to_owned())
    }

    fn program(&self, name: &str) -> Command {
        let mut command = Command::new("setpriv");
        command
            .args(["--reuid=65534", "--regid=65534", "--clear-groups"])
            .arg(self.programs.join(name))
            .current_dir(self.folder.path());
        command
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.kill();
    }
}

/// The folder of the server's programs, which any user may read.
fn programs(folder: &Path) -> PathBuf {
    if let Some(installed) = find_newest(Path::new("/usr/lib/postgresql")) {
        return installed;
    }
    let unpacked = Path::new(ROOT).join("target/tools/postgresql/usr");
    let copied = Command::new("cp").arg("-a").arg(&unpacked).arg(folder).status().expect("cp is installed");
    assert!(copied.success(), "this test needs PostgreSQL: scripts/setup test-all");
    find_newest(&folder.join("usr/lib/postgresql"))
        .expect("this test needs PostgreSQL: scripts/setup test-all")
}

/// The programs of the newest version below a folder.
fn find_newest(below: &Path) -> Option<PathBuf> {
    let versions = fs::read_dir(below).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = versions.map(|version| version.path().join("bin")).collect();
    found.retain(|bin| bin.join("postgres").exists());
    found.sort();
    found.pop()
}
