//! Plays one fault on a connection.

use std::{future::Future, time::Duration};

use tokio::sync::Semaphore;

use super::{CallOutcome, connection::Connection};
use crate::{FakeAnswer, FakeStream, Fault, Framing, Step};

/// What becomes of the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum After {
    KeepAlive,
    Close,
}

/// Why playing stopped before the end.
#[derive(Clone, Copy, Debug)]
enum Stop {
    ClientGone,
    Broken,
}

impl From<std::io::Error> for Stop {
    fn from(_: std::io::Error) -> Self {
        Self::ClientGone
    }
}

/// Plays a fault and says how the call ended and whether the connection lives on.
pub(super) async fn play(
    connection: &mut Connection,
    fault: Fault,
    gate: &Semaphore,
    number: u64,
) -> (CallOutcome, After) {
    let mut player = Player { connection, gate, number };
    match player.play(fault).await {
        Ok(after) => (CallOutcome::Complete, after),
        Err(Stop::ClientGone) => (CallOutcome::ClientGone, After::Close),
        Err(Stop::Broken) => (CallOutcome::Broken, After::Close),
    }
}

struct Player<'a> {
    connection: &'a mut Connection,
    gate: &'a Semaphore,
    number: u64,
}

impl Player<'_> {
    async fn play(&mut self, mut fault: Fault) -> Result<After, Stop> {
        loop {
            fault = match fault {
                Fault::SlowHead { delay_ms, then } => {
                    self.pause(delay_ms).await?;
                    *then
                }
                Fault::AtGate { then } => {
                    self.pass_gate().await?;
                    *then
                }
                Fault::Answer(answer) => return self.answer(&answer).await,
                Fault::Stream(stream) => return self.stream(&stream).await,
                Fault::HangBeforeHead => return self.hang().await,
                Fault::ResetBeforeHead => return self.reset(),
                // A chat answer was replaced by what it is before it came here.
                Fault::CloseBeforeHead | Fault::RefuseConnection | Fault::Chat(_) => {
                    return Err(Stop::Broken);
                }
            };
        }
    }

    async fn answer(&mut self, answer: &FakeAnswer) -> Result<After, Stop> {
        let length = format!("content-length: {}\r\n", answer.body.len());
        let mut bytes = self.head(answer.status, &answer.headers, "application/json", &length);
        let kept = answer.cut_after_bytes.unwrap_or(usize::MAX).min(answer.body.len());
        bytes.extend_from_slice(&answer.body[..kept]);
        self.write(&bytes).await?;
        if kept < answer.body.len() { Err(Stop::Broken) } else { Ok(After::KeepAlive) }
    }

    async fn stream(&mut self, stream: &FakeStream) -> Result<After, Stop> {
        let framing = match stream.framing {
            Framing::Chunked => "transfer-encoding: chunked\r\n",
            Framing::UntilClose => "connection: close\r\n",
        };
        let head = self.head(stream.status, &stream.headers, "text/event-stream", framing);
        self.write(&head).await?;
        for step in &stream.steps {
            self.step(step, stream.framing).await?;
        }
        match stream.framing {
            Framing::Chunked => {
                self.write(b"0\r\n\r\n").await?;
                Ok(After::KeepAlive)
            }
            Framing::UntilClose => Ok(After::Close),
        }
    }

    async fn step(&mut self, step: &Step, framing: Framing) -> Result<(), Stop> {
        match step {
            // An empty chunk would be the last one.
            Step::Bytes(bytes) if bytes.is_empty() => Ok(()),
            Step::Bytes(bytes) => match framing {
                Framing::Chunked => {
                    let mut chunk = format!("{:x}\r\n", bytes.len()).into_bytes();
                    chunk.extend_from_slice(bytes);
                    chunk.extend_from_slice(b"\r\n");
                    self.write(&chunk).await
                }
                Framing::UntilClose => self.write(bytes).await,
            },
            Step::Raw(bytes) => self.write(bytes).await,
            Step::PauseMs(pause_ms) => self.pause(*pause_ms).await,
            Step::WaitForGate => self.pass_gate().await,
            Step::Reset => self.reset().map(drop),
            Step::Close => Err(Stop::Broken),
            Step::HalfClose => {
                self.connection.half_close().await?;
                self.connection.client_gone().await;
                Err(Stop::Broken)
            }
            Step::Hang => self.hang().await.map(drop),
        }
    }

    fn head(&self, status: u16, headers: &[(String, String)], media_type: &str, framing: &str) -> Vec<u8> {
        let has = |name: &str| headers.iter().any(|(header, _)| header.eq_ignore_ascii_case(name));
        let mut head = format!("HTTP/1.1 {status} \r\n{framing}");
        let mut line = |name: &str, value: &str| {
            // A line break in a script would be another header.
            let clean = |text: &str| text.replace(['\r', '\n'], " ");
            head.push_str(&clean(name));
            head.push_str(": ");
            head.push_str(&clean(value));
            head.push_str("\r\n");
        };
        if !has("content-type") {
            line("content-type", media_type);
        }
        if !has("x-request-id") {
            line("x-request-id", &format!("req-fake-{}", self.number));
        }
        headers.iter().for_each(|(name, value)| line(name, value));
        head.push_str("\r\n");
        head.into_bytes()
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        if self.connection.is_client_gone() {
            return Err(Stop::ClientGone);
        }
        Ok(self.connection.write(bytes).await?)
    }

    fn reset(&self) -> Result<After, Stop> {
        self.connection.reset_on_close()?;
        Err(Stop::Broken)
    }

    async fn hang(&mut self) -> Result<After, Stop> {
        self.connection.client_gone().await;
        Err(Stop::ClientGone)
    }

    async fn pause(&mut self, pause_ms: u64) -> Result<(), Stop> {
        self.unless_gone(tokio::time::sleep(Duration::from_millis(pause_ms))).await
    }

    async fn pass_gate(&mut self) -> Result<(), Stop> {
        let gate = self.gate;
        self.unless_gone(async move {
            // The gate is never closed; each opening lets one step pass.
            if let Ok(permit) = gate.acquire().await {
                permit.forget();
            }
        })
        .await
    }

    async fn unless_gone(&mut self, done: impl Future<Output = ()>) -> Result<(), Stop> {
        tokio::select! {
            biased;
            () = done => Ok(()),
            () = self.connection.client_gone() => Err(Stop::ClientGone),
        }
    }
}
