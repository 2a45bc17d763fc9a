//! A real PostgreSQL server of a test's own.

use std::{
    fs,
    io::{self, BufRead, BufReader, Write},
    net::TcpListener,
    os::unix::fs::{PermissionsExt as _, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::atomic::{AtomicU32, Ordering},
};

/// The servers of the distribution's packages, newest last.
const INSTALLED: &str = "/usr/lib/postgresql";
/// The user that runs the server where the test is root: PostgreSQL refuses to.
const USER: &str = "postgres";

/// A `postgres` on a free port of this machine, in a temporary folder, that asks nobody for a password. Stopped and removed
/// on drop.
#[derive(Debug)]
pub struct PostgresServer {
    folder: PathBuf,
    programs: PathBuf,
    port: u16,
    process: Option<Child>,
    databases: AtomicU32,
    has_tls: bool,
}

/// A session of a [`PostgresServer`] that holds what it has taken; ended on drop.
#[derive(Debug)]
pub struct HeldSession {
    process: Child,
}

impl Drop for HeldSession {
    fn drop(&mut self) {
        // One that has ended by itself is ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl PostgresServer {
    /// Starts one, and waits until it answers.
    ///
    /// # Errors
    /// The programs are not installed, or the machine has no port or no user for them.
    pub fn start() -> io::Result<Self> {
        Self::start_as(None)
    }

    /// Starts one that speaks TLS to whoever asks for it, with a certificate and its key in PEM files.
    ///
    /// # Errors
    /// As [`Self::start`], and where a file cannot be read.
    pub fn start_with_tls(certificate: &Path, key: &Path) -> io::Result<Self> {
        Self::start_as(Some((certificate, key)))
    }

    fn start_as(tls: Option<(&Path, &Path)>) -> io::Result<Self> {
        let programs = programs()?;
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let folder = std::env::temp_dir().join(format!("gw-postgres-{}-{port}", std::process::id()));
        fs::create_dir_all(&folder)?;
        let mut server = Self {
            folder,
            programs,
            port,
            process: None,
            databases: AtomicU32::new(0),
            has_tls: tls.is_some(),
        };
        if let Some((user, group)) = user() {
            chown(&server.folder, Some(user), Some(group))?;
        }
        let data = server.folder.join("data");
        let mut make = server.command("initdb");
        make.arg("-D").arg(&data).args(["-U", "gw", "-A", "trust", "--no-sync", "-E", "UTF8", "--locale=C"]);
        quietly(&mut make)?;
        for (from, name) in
            tls.into_iter().flat_map(|(certificate, key)| [(certificate, "server.crt"), (key, "server.key")])
        {
            let own = server.folder.join("data").join(name);
            fs::write(&own, fs::read(from)?)?;
            // The server takes no key that others may read.
            fs::set_permissions(&own, fs::Permissions::from_mode(0o600))?;
            if let Some((user, group)) = user() {
                chown(&own, Some(user), Some(group))?;
            }
        }
        server.run()?;
        Ok(server)
    }

    /// Makes a database, and returns its address as a configuration names it.
    ///
    /// # Errors
    /// The server does not answer.
    pub fn database(&self) -> io::Result<String> {
        let name = format!("gw{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"))?;
        Ok(self.url(&name))
    }

    /// Returns the address of a database.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://gw@127.0.0.1:{}/{database}", self.port)
    }

    /// Returns the port.
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// Runs statements in a database; returns what they print, a line a row, columns parted by `|`.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn sql(&self, database: &str, sql: &str) -> io::Result<String> {
        let mut ask = Command::new(self.programs.join("psql"));
        ask.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "gw"]);
        ask.args(["-p", &self.port.to_string(), "-d", database, "-c", sql]);
        let output = ask.output()?;
        if output.status.success() {
            Ok(String::from_utf8_lossy(&output.stdout).into_owned())
        } else {
            Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
        }
    }

    /// Runs statements in a session that stays open until what comes back is dropped.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub fn hold(&self, database: &str, sql: &str) -> io::Result<HeldSession> {
        let mut ask = Command::new(self.programs.join("psql"));
        ask.args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h", "127.0.0.1", "-U", "gw"]);
        ask.args(["-p", &self.port.to_string(), "-d", database]);
        let mut process = ask.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let held = process.stdin.take().zip(process.stdout.take());
        let mut session = HeldSession { process };
        let (mut input, output) = held.ok_or(io::ErrorKind::BrokenPipe)?;
        write!(input, "{sql};\n\\echo held\n")?;
        session.process.stdin = Some(input);
        let mut lines = BufReader::new(output).lines();
        if lines.by_ref().any(|line| line.is_ok_and(|line| line == "held")) {
            Ok(session)
        } else {
            Err(io::Error::other("the statements were refused"))
        }
    }

    /// Stops the server: `fast` ends every connection, `immediate` is as a crash.
    ///
    /// # Errors
    /// It does not run.
    pub fn stop(&mut self, mode: &str) -> io::Result<()> {
        let mut stop = self.command("pg_ctl");
        stop.arg("stop").arg("-D").arg(self.folder.join("data")).args(["-m", mode]);
        quietly(&mut stop)?;
        if let Some(mut process) = self.process.take() {
            process.wait()?;
        }
        Ok(())
    }

    /// Starts the server again, on the same port with the same data, and waits until it answers.
    ///
    /// # Errors
    /// As [`Self::start`].
    pub fn run(&mut self) -> io::Result<()> {
        let mut run = self.command("postgres");
        run.arg("-D").arg(self.folder.join("data")).arg("-k").arg(&self.folder);
        run.args(["-h", "127.0.0.1", "-p", &self.port.to_string()]);
        // What a crash of the machine would take matters to no test. What a commit has confirmed must survive one of the
        // server, so commits wait for the log.
        run.args(["-c", "fsync=off", "-c", "full_page_writes=off"]);
        run.args(["-c", "autovacuum=off", "-c", "wal_level=minimal", "-c", "max_wal_senders=0"]);
        run.args(["-c", "max_connections=50", "-c", "shared_buffers=16MB"]);
        run.args(["-c", if self.has_tls { "ssl=on" } else { "ssl=off" }]);
        self.process = Some(run.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?);
        let port = self.port.to_string();
        let mut ready = Command::new(self.programs.join("pg_isready"));
        ready.args(["-q", "-h", "127.0.0.1", "-p", &port, "-t", "10"]);
        loop {
            if ready.status()?.success() {
                return Ok(());
            }
            let ended = self.process.as_mut().map(Child::try_wait).transpose()?.flatten();
            if ended.is_some() {
                return Err(io::Error::other("the PostgreSQL server has ended"));
            }
        }
    }

    /// Sends every process of the server a signal, such as `-STOP`, after which it takes connections and answers nobody,
    /// and `-CONT`.
    ///
    /// # Errors
    /// There is no `pkill`, or it failed.
    pub fn signal(&self, signal: &str) -> io::Result<()> {
        let leader = fs::read_to_string(self.folder.join("data/postmaster.pid"))?;
        let leader = leader.lines().next().unwrap_or_default().to_owned();
        let children = Command::new("pgrep").args(["-P", &leader]).output()?;
        let children = String::from_utf8_lossy(&children.stdout).into_owned();
        let status =
            Command::new("kill").arg(signal).arg(&leader).args(children.split_whitespace()).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("the signal was not sent")) }
    }

    /// Returns a program of the server's, run by the user that may run it.
    fn command(&self, program: &str) -> Command {
        let path = self.programs.join(program);
        let mut command = if user().is_some() {
            let mut command = Command::new("runuser");
            command.args(["-u", USER, "--"]).arg(path);
            command
        } else {
            Command::new(path)
        };
        command.current_dir("/");
        command
    }
}

impl Drop for PostgresServer {
    fn drop(&mut self) {
        // One that was stopped by a signal must go on to hear that it ends.
        let _ = self.signal("-CONT");
        let _ = self.stop("immediate");
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Returns the folder of the newest server that is installed.
fn programs() -> io::Result<PathBuf> {
    let versions = fs::read_dir(INSTALLED).map_err(|_| {
        io::Error::new(io::ErrorKind::NotFound, "PostgreSQL is not installed: apt-get install postgresql")
    })?;
    let number = |path: &Path| path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
    let newest = versions.filter_map(|entry| Some(entry.ok()?.path())).max_by_key(|path| number(path));
    newest.map(|path| path.join("bin")).ok_or_else(|| io::ErrorKind::NotFound.into())
}

/// Returns the numbers of the user and group that run the server, where this process is root; `None`: itself.
fn user() -> Option<(u32, u32)> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let is_root = status.lines().any(|line| line.starts_with("Uid:\t0\t"));
    let users = fs::read_to_string("/etc/passwd").ok()?;
    let line = users.lines().find(|line| line.split(':').next() == Some(USER)).filter(|_| is_root)?;
    let mut fields = line.split(':').skip(2).map(str::parse);
    Some((fields.next()?.ok()?, fields.next()?.ok()?))
}

fn quietly(command: &mut Command) -> io::Result<()> {
    let output = command.stdin(Stdio::null()).output()?;
    if output.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&output.stderr).into_owned()))
}
