//! A real Redis server of a test's own.

use std::{
    io,
    net::TcpListener,
    process::{Child, Command, Stdio},
};

/// A `redis-server` on a free port of this machine that keeps nothing on disk. Killed on drop.
#[derive(Debug)]
pub struct RedisServer {
    process: Child,
    port: u16,
}

impl RedisServer {
    /// Starts one; it answers some tens of milliseconds later.
    ///
    /// # Errors
    /// The program is not installed, or the machine has no port.
    pub fn start() -> io::Result<Self> {
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let mut command = Command::new("redis-server");
        command.args(["--bind", "127.0.0.1", "--port", &port.to_string()]);
        command.args(["--save", "", "--appendonly", "no"]);
        let process = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        Ok(Self { process, port })
    }

    /// Returns its address, as a configuration names it.
    pub fn url(&self) -> String {
        format!("redis://127.0.0.1:{}", self.port)
    }

    /// Sends it a signal, such as `-STOP`, after which it takes connections and answers nobody, and `-CONT`.
    ///
    /// # Errors
    /// There is no `kill`, or it failed.
    pub fn signal(&self, signal: &str) -> io::Result<()> {
        let status = Command::new("kill").args([signal, &self.process.id().to_string()]).status()?;
        if status.success() { Ok(()) } else { Err(io::Error::other("the signal was not sent")) }
    }
}

impl Drop for RedisServer {
    fn drop(&mut self) {
        // One that has ended by itself is ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
