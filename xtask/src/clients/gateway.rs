//! A running `gw` that ends with its owner.

use std::{
    fs,
    io::{Read, Write},
    net::TcpStream,
    path::{Path, PathBuf},
    process::{Child, Command},
    time::Duration,
};

use super::settings::{CLIENT_KEY, CLIENT_KEY_VARIABLE, Settings, UPSTREAM_KEY_VARIABLE};
use crate::{Failure, host};

const START_PATIENCE: Duration = Duration::from_secs(20);
const LOOK_EVERY: Duration = Duration::from_millis(20);
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// The process and its folder; both are gone when this is dropped.
#[derive(Debug)]
pub(super) struct Gateway {
    process: Child,
    folder: PathBuf,
}

impl Gateway {
    /// Starts `gw` with these settings and waits until it says that it is well.
    ///
    /// # Errors
    ///
    /// When it cannot be started, ends by itself, or is not well in time.
    pub(super) fn start(binary: &Path, settings: &Settings<'_>) -> Result<Self, Failure> {
        let folder = std::env::temp_dir().join(format!("gw-clients-{}", std::process::id()));
        let config = folder.join("gw.toml");
        fs::create_dir_all(&folder)
            .and_then(|()| fs::write(&config, settings.to_toml()))
            .map_err(|error| Failure::Work(format!("cannot write `{}`: {error}", config.display())))?;
        let mut command = Command::new(binary);
        command
            .args(["serve", "--config"])
            .arg(&config)
            .current_dir(&folder)
            .env(CLIENT_KEY_VARIABLE, CLIENT_KEY)
            .env(UPSTREAM_KEY_VARIABLE, "sk-loopback");
        let process = command.spawn().map_err(|error| host::cannot_start(&command, &error))?;
        let mut gateway = Self { process, folder };
        gateway.wait_until_well(settings.admin_port)?;
        Ok(gateway)
    }

    fn wait_until_well(&mut self, admin_port: u16) -> Result<(), Failure> {
        let begin = host::now();
        while begin.elapsed() < START_PATIENCE {
            if let Ok(Some(status)) = self.process.try_wait() {
                return Err(Failure::Work(format!("gw ended before it served: {status}")));
            }
            if answers_ok(admin_port, "/healthz") {
                return Ok(());
            }
            host::pause(LOOK_EVERY);
        }
        Err(Failure::Work(format!("gw was not well within {} s", START_PATIENCE.as_secs())))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        // Nothing better can be done about a process or a folder that is already gone.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Asks for a path with the smallest HTTP request there is and looks at the status alone.
fn answers_ok(port: u16, path: &str) -> bool {
    let ask = || -> std::io::Result<bool> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
        write!(stream, "GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n")?;
        let mut start = [0; 12];
        stream.read_exact(&mut start)?;
        Ok(&start == b"HTTP/1.1 200")
    };
    ask().unwrap_or(false)
}
