//! The reader's thread: queries on a connection of its own.

use std::{
    path::Path,
    sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel},
    thread::JoinHandle,
};

use gw_types::GatewayError;
use rusqlite::Connection;
use tokio::sync::oneshot;

use super::{reads::Unreadable, schema};
use crate::StoreError;

/// Queries that wait at once; more are refused as `Overloaded`.
const WAITING_MAX: usize = 64;

type Question = Box<dyn FnOnce(&Connection) + Send>;

/// Asks the reader's thread. A thread of its own, so that the ledger works under any runtime, or under none.
#[derive(Debug)]
pub(super) struct Reader {
    questions: Option<SyncSender<Question>>,
    thread: Option<JoinHandle<()>>,
}

impl Reader {
    pub(super) fn start(path: &Path) -> Result<Self, StoreError> {
        let connection = schema::open_to_read(path)?;
        let (questions, asked) = sync_channel(WAITING_MAX);
        let thread = std::thread::Builder::new()
            .name("gw-ledger-read".to_owned())
            .spawn(move || answer_all(&connection, &asked))
            .map_err(|source| StoreError::Open { path: path.to_owned(), source: source.into() })?;
        Ok(Self { questions: Some(questions), thread: Some(thread) })
    }

    /// Asks one question; dropping the future leaves its answer unheard.
    pub(super) async fn ask<T: Send + 'static>(
        &self,
        question: impl FnOnce(&Connection) -> Result<T, Unreadable> + Send + 'static,
    ) -> Result<T, GatewayError> {
        let (reply, answer) = oneshot::channel();
        let asked: Question = Box::new(move |connection| {
            // Whoever asked may be gone.
            let _unheard = reply.send(question(connection));
        });
        let Some(questions) = &self.questions else { return Err(Unreadable::Now.into()) };
        questions.try_send(asked).map_err(|error| match error {
            TrySendError::Full(_) | TrySendError::Disconnected(_) => GatewayError::from(Unreadable::Now),
        })?;
        Ok(answer.await.unwrap_or(Err(Unreadable::Now))?)
    }

    /// Answers what was asked so far, and closes the connection.
    pub(super) fn stop(&mut self) {
        self.questions = None;
        if let Some(thread) = self.thread.take() {
            let _ended = thread.join();
        }
    }
}

fn answer_all(connection: &Connection, asked: &Receiver<Question>) {
    for question in asked {
        question(connection);
    }
}
